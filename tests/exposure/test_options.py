from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import models
from django.test.utils import isolate_apps

from mcp_django.exposure.admin_sites import exposure_of
from mcp_django.exposure.options import looks_secret
from mcp_django.models import PersonalToken


@isolate_apps("tests.shop")
def looks(name, field=None):
    attributes = {"__module__": "tests.shop.models", name: field or models.CharField(max_length=9)}
    return looks_secret(type("Thing", (models.Model,), attributes), name)


SECRET = [
    "password", "user_password", "api_key", "key", "secret", "client_secret2", "token",
    "refresh_token", "otp", "salt", "private_notes", "password_hash", "Token", "pin",
]  # fmt: skip
OPEN = ["keyboard", "monkey", "author", "authority", "pinned", "saltiness", "name", "hashtag"]


#: Yes or no, a date and a link.
HARMLESS = {
    "can_auth": models.BooleanField(),
    "password_updated": models.DateTimeField(),
    "token_until": models.DateField(),
    "key": models.ForeignKey(User, models.CASCADE),
    "private": models.ManyToManyField(User),
}


def test_names_of_secrets_are_recognised_and_those_that_only_sound_like_it_are_not():
    assert [name for name in SECRET if not looks(name)] == []
    assert [name for name in OPEN if looks(name)] == []
    assert [name for name, field in HARMLESS.items() if looks(name, field)] == []
    assert looks("content", models.BinaryField())
    assert looks("login", models.ForeignKey(Session, models.CASCADE))
    assert looks_secret(User, "password")
    assert not looks_secret(User, "username")


def test_everything_in_models_of_credentials_is_secret():
    assert looks_secret(Session, "expire_date")
    assert looks_secret(PersonalToken, "name")


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [("key", False), ("db_key", False), ("pin", False), ("api_key", True), ("password", True)],
)
@isolate_apps("tests.shop")
def test_a_column_in_the_list_of_the_admin_may_have_an_ambiguous_name(name, is_secret):
    model = type("Named", (models.Model,), {
        "__module__": "tests.shop.models", name: models.CharField(max_length=9)
    })  # fmt: skip
    shown = type("NamedAdmin", (admin.ModelAdmin,), {"list_display": [name]})
    searched = type("NamedAdmin", (admin.ModelAdmin,), {"search_fields": [f"^{name}"]})

    assert looks_secret(model, name)
    for kind in (shown, searched):
        exposure = exposure_of(kind(model, admin.site))
        assert (name not in exposure.fields) is is_secret
        assert (name not in exposure.label_fields) is is_secret
    assert (exposure.search_fields == ()) is is_secret
