from __future__ import annotations

import pytest
from django.core import signing

from mcp_django.signing import seal, unseal


def test_a_sealed_value_comes_back():
    token = seal("é/1", purpose="list", bound_to="a")

    assert unseal(token, purpose="list", bound_to="a", max_age=60) == "é/1"


@pytest.mark.parametrize("change", [{"purpose": "other"}, {"bound_to": "b"}, {"max_age": -1}])
def test_another_purpose_owner_or_time_gives_nothing(change):
    token = seal("x", purpose="list", bound_to="a")

    assert unseal(token, **{"purpose": "list", "bound_to": "a", "max_age": 60, **change}) is None


@pytest.mark.parametrize("token", ["", ":", "a:b:c", "é", "x" * 5000, "\x00", "=" * 40])
def test_damaged_tokens_give_nothing(token):
    assert unseal(token, purpose="list", bound_to="a", max_age=60) is None


def test_every_changed_character_is_noticed():
    token = seal("value", purpose="list", bound_to="a")

    for at in range(len(token)):
        other = "A" if token[at] != "A" else "B"
        changed = token[:at] + other + token[at + 1 :]
        assert unseal(changed, purpose="list", bound_to="a", max_age=60) is None


def test_a_signed_value_that_is_no_base64_gives_nothing():
    signer = signing.TimestampSigner(salt="mcp_django.list:" + "0" * 64)

    assert unseal(signer.sign("!"), purpose="list", bound_to="a", max_age=60) is None
