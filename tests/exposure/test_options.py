from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import models
from django.test.utils import isolate_apps

from mcp_django.exposure.options import ModelExposure, looks_secret
from mcp_django.models import PersonalToken


@isolate_apps("tests.shop")
def looks(name, field=None):
    attributes = {
        "__module__": "tests.shop.models",
        name: field or models.CharField(max_length=9),
    }
    return looks_secret(type("Thing", (models.Model,), attributes), name)


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "user_password",
        "api_key",
        "key",
        "secret",
        "client_secret2",
        "token",
        "refresh_token",
        "otp",
        "salt",
        "private_notes",
        "password_hash",
        "Token",
        "pin",
    ],
)
def test_names_of_secrets_are_recognised(name):
    assert looks(name)


@pytest.mark.parametrize(
    "name", ["keyboard", "monkey", "author", "authority", "pinned", "saltiness", "name", "hashtag"]
)
def test_names_that_only_sound_like_it_are_not(name):
    assert not looks(name)


def test_binary_columns_are_secret_whatever_their_name():
    assert looks("content", models.BinaryField())


@pytest.mark.parametrize(
    ("model", "name"), [(Session, "expire_date"), (PersonalToken, "name"), (User, "password")]
)
def test_everything_in_models_of_credentials_is_secret(model, name):
    assert looks_secret(model, name)


def test_a_user_name_is_no_secret():
    assert not looks_secret(User, "username")


def test_an_exposure_decides_itself_only_where_it_says_how():
    class Plain(ModelExposure):
        fields = ("id",)

    class Rows(Plain):
        def get_queryset(self, request):
            return User.objects.none()

    class Permission(Plain):
        def has_view_permission(self, request, obj=None):
            return True

    assert [kind(User).decides_itself for kind in (Plain, Rows, Permission)] == [
        False,
        True,
        True,
    ]
    assert repr(Plain(User)) == "<Plain of auth.user>"
