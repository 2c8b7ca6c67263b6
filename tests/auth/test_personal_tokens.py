from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import OperationalError, connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.auth.authenticate import authenticate, cache
from mcp_django.exceptions import AuthenticationFailed, ServiceUnavailable
from mcp_django.models import PersonalToken
from mcp_django.token_secrets import is_well_formed, new_secret
from tests.tables import without_table

#: Whatever the reason.
SAME = r"^The credential is not valid\.$"


def other_than(character):
    return "a" if character != "a" else "b"


# The secret


def test_a_secret_is_one_word_that_scanners_know():
    secret = new_secret()

    assert re.fullmatch(r"mcp_[0-9A-Za-z]{49}", secret)
    assert is_well_formed(secret)
    assert secret != new_secret()


@given(st.text())
def test_no_other_text_is_well_formed(text):
    assert not is_well_formed(text)


# Making one


@pytest.mark.django_db
def test_a_token_shown_to_people_shows_no_digest_and_revoking_again_keeps_the_first_date(
    token, secret
):
    shown = f"{token} {token!r}"
    token.revoke()
    before = token.revoked_at
    token.revoke()

    assert token.digest not in shown
    assert secret not in shown
    assert str(PersonalToken(name="", hint="aB3d")) == "mcp_aB3d…"
    assert token.revoked_at == before
    assert token.state() == "revoked"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "days"), [({"TOKEN_DAYS": 7}, 7), ({"TOKEN_DAYS": 90, "TOKEN_MAX_DAYS": 3}, 3)]
)
def test_a_token_ends_after_the_configured_days(settings, alice, options, days):
    settings.MCP_DJANGO = options

    token, _ = PersonalToken.create(user=alice, name="x")

    life = token.expires_at - token.created_at
    assert timedelta(days=days, minutes=-1) < life < timedelta(days=days, minutes=1)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"expires_at": timezone.now() + timedelta(days=400)}, "365 days at most"),
        ({"expires_at": timezone.now() - timedelta(days=1)}, "in the future"),
        ({"scopes": ["mcp:everything"]}, "Unknown scope 'mcp:everything'"),
        ({"scopes": []}, "cannot be blank"),
        ({"models": ["order"]}, "labels"),
    ],
)
def test_a_token_that_cannot_be_is_not_made(alice, wrong, sentence):
    with pytest.raises(ValidationError, match=sentence):
        PersonalToken.create(user=alice, name="x", **wrong)

    assert not PersonalToken.objects.exists()


# Presenting one


def end(token):
    token.expires_at = timezone.now() - timedelta(seconds=1)
    token.save()


def deactivate(token):
    token.user.is_active = False
    token.user.save()


def change_behind_everybodys_back(**facts):
    def change(token):
        PersonalToken.objects.update(**facts)
        cache.clear()

    return change


#: What becomes of the token, and of its secret, and whether that takes a query.
REFUSALS = {
    "expired": (end, "{}"),
    "revoked": (PersonalToken.revoke, "{}"),
    "inactive": (deactivate, "{}"),
    "deleted user": (lambda token: token.user.delete(), "{}"),
    "deleted": (PersonalToken.delete, "{}"),
    "other server": (change_behind_everybodys_back(server="other"), "{}"),
    "never was": (change_behind_everybodys_back(digest="x"), "{}"),
    "short": (None, "{:.52}"),
    "long": (None, "{}a"),
    "twice": (None, "{0},Bearer {0}"),
    "prefix only": (None, "mcp_"),
    "not ASCII": (None, f"mcp_{'é' * 49}"),
    "Arabic": (None, "{:.52}٣"),
    "five kilobytes": (None, "mcp_" + "a" * 5000),
    **{f"typo {at}": (None, at) for at in (4, 20, 46, 47, 52)},
}


@pytest.mark.django_db
@pytest.mark.parametrize(("spoil", "written"), REFUSALS.values(), ids=REFUSALS)
def test_whatever_is_wrong_with_a_token_the_answer_is_the_same_and_comes_at_once(
    present, token, secret, spoil, written, clock, django_assert_max_num_queries
):
    # The scheme is not a matter of case or spaces.
    assert authenticate(present(f"BEARER  {secret}")).method == "personal_token"
    if isinstance(written, int):
        written = secret[:written] + other_than(secret[written]) + secret[written + 1 :]
    if spoil is not None:
        spoil(token)

    # A checksum tells of a typing error.
    with (
        django_assert_max_num_queries(0 if spoil is None else 3),
        pytest.raises(AuthenticationFailed, match=SAME) as failed,
    ):
        authenticate(present(f"bearer {written.format(secret)}"))

    assert type(failed.value) is AuthenticationFailed


# Use


@pytest.mark.django_db
@pytest.mark.parametrize(("seconds", "is_noted"), [(30, False), (60, True)])
def test_a_use_is_noted_once_a_minute(token, secret, present, seconds, is_noted):
    before = timezone.now() - timedelta(seconds=seconds)
    PersonalToken.objects.update(last_used_at=before)

    authenticate(present(f"Bearer {secret}"))

    token.refresh_from_db()
    assert (token.last_used_at > before) is is_noted


# Databases that cannot say


@pytest.mark.django_db(transaction=True)
def test_without_tables_nobody_can_be_served_and_the_log_says_what_to_type(secret, present):
    with (
        without_table(PersonalToken),
        pytest.raises(ServiceUnavailable, match=r"manage\.py migrate"),
    ):
        authenticate(present(f"Bearer {secret}"))


@pytest.mark.django_db
def test_a_database_that_fails_refuses_no_credential(secret, present):
    def fail(*arguments):
        raise OperationalError("The disk is on fire.")

    with connection.execute_wrapper(fail), pytest.raises(OperationalError, match="on fire"):
        authenticate(present(f"Bearer {secret}"))
