from __future__ import annotations

import pytest

from mcp_django.signing import ShortSigner, salt_of, seal, unseal


def sealed():
    return seal("é/1", purpose="list", bound_to="a")


def opened(token, **change):
    return unseal(token, **{"purpose": "list", "bound_to": "a", "max_age": 60, **change})


@pytest.mark.parametrize("change", [{"purpose": "other"}, {"bound_to": "b"}, {"max_age": -1}])
def test_a_sealed_value_comes_back_but_for_another_purpose_owner_or_time(change):
    token = sealed()

    assert opened(token) == "é/1"
    assert opened(token, **change) is None


@pytest.mark.parametrize("token", ["", ":", "a:b:c", "é", "x" * 5000, "\x00", "=" * 40, "a"])
def test_damaged_tokens_and_a_signed_value_that_is_no_base64_give_nothing(token):
    if token == "a":
        token = ShortSigner(salt=salt_of("list", "a")).sign(token)

    assert opened(token) is None


def test_every_changed_character_is_noticed():
    token = sealed()

    for at in range(len(token)):
        other = "A" if token[at] != "A" else "B"
        assert opened(token[:at] + other + token[at + 1 :]) is None
