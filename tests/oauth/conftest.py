from __future__ import annotations

import pytest

from tests.clients import browser_of
from tests.oauth.flow import CALLBACK, Flow
from tests.services import is_there

if is_there("oauth"):
    from mcp_django.oauth.toolkit import get_application_model


@pytest.fixture
def alice(django_user_model):
    return django_user_model.objects.create_superuser("alice", password="correct horse")


@pytest.fixture
def browser(alice):
    return browser_of(alice)


@pytest.fixture
def new_client():
    """Store a client that nobody has checked."""

    def make(*, source="cimd", **changes):
        model = get_application_model()
        fields = {
            "client_id": "https://claude.example/client.json",
            "name": "Claude",
            "redirect_uris": CALLBACK,
            "client_type": model.CLIENT_PUBLIC,
            "authorization_grant_type": model.GRANT_AUTHORIZATION_CODE,
            "registration_source": source,
        }
        return model.objects.create(**fields | changes)

    return make


@pytest.fixture
def flow(db, new_client, browser):
    return Flow(new_client(), browser=browser)
