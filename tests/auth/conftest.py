from __future__ import annotations

import pytest
from django.test import RequestFactory

from mcp_django.auth.authenticate import cache
from mcp_django.models import PersonalToken
from mcp_django.stores.cache_version import generations


@pytest.fixture(autouse=True)
def nothing_remembered():
    cache.clear()
    generations._readings.clear()


@pytest.fixture
def alice(make_user):
    return make_user("alice", "view_group", password="correct horse")


@pytest.fixture
def token_and_secret(alice):
    return PersonalToken.create(user=alice, name="laptop")


@pytest.fixture
def token(token_and_secret):
    return token_and_secret[0]


@pytest.fixture
def secret(token_and_secret):
    return token_and_secret[1]


@pytest.fixture
def present():
    """A POST with this Authorization header, or without one."""

    def build(authorization=None, *, path="/mcp", **extra):
        headers = {} if authorization is None else {"authorization": authorization}
        return RequestFactory().post(path, headers=headers, **extra)

    return build
