from __future__ import annotations

import random
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.db import transaction
from django.db.models import CharField
from django.test import override_settings

from mcp_django.exposure.query import find
from tests.leaks.paths import Backwards, Sounds, lookups_of
from tests.leaks.site import make_admin_site


@pytest.fixture(scope="session")
def seed():
    """Another one for each run. `print` shows it beside a test that fails."""
    return random.SystemRandom().randrange(10**9)


@pytest.fixture(scope="module")
def leaky_site(django_db_setup, tmp_path_factory):
    """The site of these tests: its admin, its files, its lookups."""
    site = make_admin_site()
    config = {**settings.MCP_DJANGO, "ADMIN_SITES": [site.name]}
    media = tmp_path_factory.mktemp("media")
    CharField.register_lookup(Backwards)
    CharField.register_lookup(Sounds)
    lookups_of.cache_clear()
    with (
        override_settings(MCP_DJANGO=config, MEDIA_ROOT=media),
        pytest.MonkeyPatch.context() as few,
    ):
        # So that there are more related records than that.
        few.setattr(find, "MOST_IN_PAGE", 2)
        few.setattr(find, "MOST_IN_RECORD", 2)
        yield site
    CharField._unregister_lookup(Backwards)  # type: ignore[arg-type]
    CharField._unregister_lookup(Sounds)
    lookups_of.cache_clear()


@pytest.fixture(scope="module")
def database(leaky_site, django_db_blocker):
    """A database that is as it was when the block ends."""

    @contextmanager
    def until_the_end():
        with django_db_blocker.unblock(), transaction.atomic():
            yield
            transaction.set_rollback(True)

    return until_the_end
