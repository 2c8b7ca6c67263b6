"""Of the tests here only those of the site whose settings are in force are collected."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from django.conf import settings

from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN, Era
from tests.clients import CheckedClient, WSGIClient

_, _, site = settings.SETTINGS_MODULE.rpartition("tests.sites.")
collect_ignore = [
    path.name for path in Path(__file__).parent.glob("test_*.py") if path.name != f"test_{site}.py"
]
#: Transports and eras that each have their own way to a call.
WAYS = [*product((CheckedClient, WSGIClient), (LATEST_LEGACY, MODERN[-1]))]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0].__name__}-{way[1].value}")
def connect(request):
    kind, revision = request.param

    def made(user):
        client = kind(user=user, revision=revision)
        if revision.era is Era.LEGACY:
            client.initialize()
        return client

    return made


@pytest.fixture
def boss(superuser):
    return CheckedClient(user=superuser)
