from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import OperationalError, connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.auth.authenticate import authenticate
from mcp_django.exceptions import AuthenticationFailed, NotAuthenticated, ServiceUnavailable
from mcp_django.models import PersonalToken
from mcp_django.principal import Restriction
from mcp_django.token_secrets import is_well_formed, new_secret
from tests.spec import requirement
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


@pytest.mark.parametrize("position", [4, 20, 46, 47, 52])
def test_one_wrong_character_anywhere_breaks_the_checksum(position):
    secret = new_secret()

    typo = secret[:position] + other_than(secret[position]) + secret[position + 1 :]

    assert not is_well_formed(typo)


@given(st.text())
def test_no_other_text_is_well_formed(text):
    assert not is_well_formed(text)


# Making one


@pytest.mark.django_db
def test_the_database_does_not_hold_the_secret(token, secret):
    with connection.cursor() as cursor:
        rows = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            rows += cursor.fetchall()

    dump = repr(rows)

    assert token.digest in dump
    assert secret not in dump
    assert secret[8:] not in dump


@pytest.mark.django_db
def test_a_token_shown_to_people_shows_no_digest(token, secret):
    shown = f"{token} {token!r}"

    assert token.digest not in shown
    assert secret not in shown
    assert str(PersonalToken(name="", hint="aB3d")) == "mcp_aB3d…"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "days"),
    [({"TOKEN_DAYS": 7}, 7), ({"TOKEN_DAYS": 90, "TOKEN_MAX_DAYS": 3}, 3)],
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


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [({"models": "shop.order"}, "list of labels"), ({"scopes": "mcp:read"}, "scopes as a list")],
)
def test_lists_are_lists(wrong, sentence):
    facts = {"name": "x", "hint": "x", "digest": "x", "scopes": ["mcp:read"], **wrong}

    with pytest.raises(ValidationError, match=sentence):
        PersonalToken(**facts).clean_fields(exclude={"user"})


def test_a_token_without_an_expiry_is_left_to_the_check_of_its_field():
    token = PersonalToken()
    token.expires_at = None  # type: ignore[assignment]  # as a form leaves it

    token.clean()


# Presenting one


@pytest.mark.django_db
def test_a_token_speaks_for_its_user_within_its_limits(alice, present):
    token, secret = PersonalToken.create(
        user=alice, name="ci", scopes=["mcp:read", "mcp:write"], read_only=True, models=["A.B"]
    )

    principal = authenticate(present(f"Bearer {secret}"))

    assert principal.user == alice
    assert principal.scopes == {"mcp:read", "mcp:write"}
    assert principal.method == "personal_token"
    assert principal.client == "ci"
    assert principal.credential_id == str(token.pk)
    assert principal.restriction == Restriction(read_only=True, models=frozenset({"a.b"}))
    assert principal.expires_at == principal.ends_at == token.expires_at


@pytest.mark.django_db
@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
def test_the_scheme_is_not_a_matter_of_case_or_spaces(present, secret, scheme):
    assert authenticate(present(f"{scheme} {secret}")).method == "personal_token"


def make_expired(token):
    token.expires_at = timezone.now() - timedelta(seconds=1)
    token.save()


def make_inactive(token):
    token.user.is_active = False
    token.user.save()


SPOILERS = {
    "expired": make_expired,
    "revoked": PersonalToken.revoke,
    "inactive": make_inactive,
    "deleted user": lambda token: token.user.delete(),
    "deleted": PersonalToken.delete,
    "other server": lambda token: PersonalToken.objects.update(server="other"),
    "never was": lambda token: PersonalToken.objects.update(digest="x"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_whatever_is_wrong_with_a_token_the_answer_is_the_same(present, token, secret, spoil):
    spoil(token)

    with pytest.raises(AuthenticationFailed) as failed:
        authenticate(present(f"Bearer {secret}"))

    assert failed.value.description == "The credential is not valid."
    assert type(failed.value) is AuthenticationFailed


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong",
    [
        lambda secret: secret[:-1] + other_than(secret[-1]),
        lambda secret: secret[:-1],
        lambda secret: secret + "a",
        lambda secret: f"{secret},Bearer {secret}",
        lambda secret: "mcp_",
        lambda secret: f"mcp_{'é' * 49}",
        lambda secret: secret[:-1] + "٣",
        lambda secret: "mcp_" + "a" * 5000,
    ],
    ids=[
        "typing error",
        "short",
        "long",
        "twice",
        "prefix only",
        "not ASCII",
        "Arabic",
        "five kilobytes",
    ],
)
def test_a_mistyped_token_is_refused_without_a_query(
    present, secret, wrong, django_assert_num_queries
):
    with (
        django_assert_num_queries(0),
        pytest.raises(AuthenticationFailed, match=SAME),
    ):
        authenticate(present(f"Bearer {wrong(secret)}"))


@requirement("authorization:no-query-token")
@pytest.mark.django_db
def test_a_token_in_the_address_or_the_body_is_no_credential(present, secret):
    request = present(path=f"/mcp?access_token={secret}", data={"access_token": secret})

    with pytest.raises(NotAuthenticated):
        authenticate(request)


# Use


@pytest.mark.django_db
@pytest.mark.parametrize(("seconds", "is_noted"), [(30, False), (60, True)])
def test_a_use_is_noted_once_a_minute_however_many_note_it(token, seconds, is_noted):
    first, second = PersonalToken.objects.get(), PersonalToken.objects.get()
    now = timezone.now()
    later = now + timedelta(seconds=seconds)

    first.mark_used(now=now)
    second.mark_used(now=later)

    token.refresh_from_db()
    assert token.last_used_at == (later if is_noted else now)


@pytest.mark.django_db
def test_revoking_again_keeps_the_first_date(token):
    token.revoke()
    before = token.revoked_at

    token.revoke()

    assert token.revoked_at == before
    assert token.state() == "revoked"


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
