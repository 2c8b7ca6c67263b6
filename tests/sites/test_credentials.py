"""Staff who open a model with its defaults open nothing that opens an account."""

from __future__ import annotations

import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from constance.models import Constance
from django.contrib import admin
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice
from knox.models import AuthToken
from rest_framework.authtoken.models import TokenProxy
from rest_framework_api_key.models import APIKey
from reversion.models import Version
from social_django.models import Association, Nonce, UserSocialAuth

from tests.decisions import open_model
from tests.sites.vault.models import Account, PartnerKey

pytestmark = pytest.mark.django_db

#: By model, the columns that open something, and one of those that staff see.
PARTLY = [
    (Account, {"login_pwd", "recovery_codes", "session_jwt", "database_dsn"}, "backup_time"),
    (Authenticator, {"data"}, "type"),
    (Constance, {"key", "value"}, "id"),
    (SocialAccount, {"extra_data"}, "provider"),
    (SocialApp, {"secret", "key", "settings"}, "name"),
    (TOTPDevice, {"key"}, "name"),
    (UserSocialAuth, {"extra_data"}, "provider"),
    (Version, {"serialized_data"}, "object_repr"),
]
WHOLLY = [APIKey, Association, AuthToken, Nonce, PartnerKey, SocialToken, TokenProxy]


@pytest.mark.parametrize(
    ("model", "secret", "seen"), PARTLY, ids=[one[0].__name__ for one in PARTLY]
)
def test_columns_that_open_something_stay_closed(boss, model, secret, seen):
    label = open_model(model)

    described = boss.data("describe_model", model=label)

    names = {one["name"] for one in described["fields"]}
    filters = {one["name"] for one in described.get("more_filters", ())}
    assert seen in names
    assert not secret & (names | filters)
    for name in secret:
        boss.refusal("find_records", model=label, fields=[name])
        boss.refusal("find_records", model=label, filters={f"{name}__isnull": False})
    written = described.get("writing", {}).get("create_record", {}).get("values", {})
    assert not secret & written.get("properties", {}).keys()


@pytest.mark.parametrize("model", WHOLLY, ids=lambda one: one.__name__)
def test_tables_of_nothing_but_tokens_do_not_exist(boss, model):
    assert admin.site.is_registered(model)
    label = open_model(model)

    answer = boss.call_tool("find_records", model=label)

    assert answer.text.startswith(f"There is no model '{label}'.")


def test_the_codes_of_a_device_are_not_in_its_rows(boss):
    described = boss.data("describe_model", model=open_model(StaticDevice))

    assert "inlines" not in described["writing"]["create_record"]
