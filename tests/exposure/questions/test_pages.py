from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.questions.conversation import LONGEST_URL, checked_url
from tests.spec import requirement


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example.com/pay/7",
        "https://shop.example.com:8443/pay?order=7&next=%2Fx#part",
        "http://localhost:8000/pay",
        "http://127.0.0.1/pay",
        "http://[::1]:8000/pay",
    ],
)
def test_a_page_is_https_or_on_this_machine(url):
    assert checked_url(url) == url


@requirement("elicitation:secrets")
@pytest.mark.parametrize(
    "url",
    [
        "", "/pay/7", "https:///pay", "https://", "https://[::1", "javascript:alert(1)",
        "data:text/html,x", "file:///etc/passwd", "http://shop.example.com/pay",
        "http://localhost.example.com/pay", "https://ada:x@shop.example.com/",
        "https://@shop.example.com/", "https://shop.example.com/?token=x",
        "https://shop.example.com/?a=1&api_key=x", "https://shop.example.com/?apiKey=x",
        "https://shop.example.com/?api-key=x", "https://shop.example.com/?password=",
        "https://shop.example.com/?X-Signature=x", "https://shop.example.com/#access_token=x",
        "https://shop.example.com/a b", "https://shop.example.com/\n",
        "https://shop.example.com/\\@evil.example.com", "https://shop.example.com/ä",
        "https://shop.example.com/" + "x" * LONGEST_URL,
    ],
)  # fmt: skip
def test_a_page_with_a_credential_or_without_a_safe_way_there_is_refused(url):
    with pytest.raises(ValueError, match=r"URL|page|IPv6"):
        checked_url(url)


def test_the_refusal_does_not_repeat_the_credential():
    with pytest.raises(ValueError, match="user in its URL") as raised:
        checked_url("https://ada:hunter2@shop.example.com/hunter2")

    assert "hunter2" not in str(raised.value)


@given(st.text())
def test_any_text_is_a_page_or_refused(text):
    with suppress(ValueError):
        assert checked_url(f"https://{text}").startswith("https://")
