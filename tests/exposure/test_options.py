from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import models
from django.test.utils import isolate_apps

from mcp_django.exposure.options import looks_secret
from mcp_django.models import PersonalToken


@isolate_apps("tests.shop")
def looks(name, field=None):
    attributes = {
        "__module__": "tests.shop.models",
        name: field or models.CharField(max_length=9),
    }
    return looks_secret(type("Thing", (models.Model,), attributes), name)


SECRET = [
    "password", "user_password", "api_key", "key", "secret", "client_secret2", "token",
    "refresh_token", "otp", "salt", "private_notes", "password_hash", "Token", "pin",
]  # fmt: skip
OPEN = ["keyboard", "monkey", "author", "authority", "pinned", "saltiness", "name", "hashtag"]


def test_names_of_secrets_are_recognised_and_those_that_only_sound_like_it_are_not():
    assert [name for name in SECRET if not looks(name)] == []
    assert [name for name in OPEN if looks(name)] == []
    assert looks("content", models.BinaryField())
    assert not looks_secret(User, "username")


@pytest.mark.parametrize(
    ("model", "name"), [(Session, "expire_date"), (PersonalToken, "name"), (User, "password")]
)
def test_everything_in_models_of_credentials_is_secret(model, name):
    assert looks_secret(model, name)
