from __future__ import annotations

import os

import pytest
from django.core.cache.backends.locmem import LocMemCache

from mcp_django.stores.interface import get_store


def test_sessions_are_in_the_default_cache_where_nobody_says_otherwise(settings):
    settings.MCP_DJANGO = {}

    assert isinstance(get_store().documents.cache, LocMemCache)


def test_a_process_has_one_store_until_the_settings_change(configure, settings):
    store = get_store()

    assert get_store() is store
    configure(NAME="Another")
    after = get_store()
    assert after is not store
    settings.CACHES = {**settings.CACHES}
    assert get_store() is not after


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
# pytest's own threads do not matter to a child that only answers one question.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_store_of_its_own():
    before = get_store()

    child = os.fork()
    if not child:
        os._exit(0 if get_store() is not before else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
