"""Masks: what a caller gets in place of the values of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from django.utils.crypto import salted_hmac

#: Digits of a pseudonym: among a million values, two share one in one of 500 sites.
DIGITS = 12
#: Characters at the end of a value that `last4` may show, and characters that it always hides.
SHOWN_AT_END = ALWAYS_HIDDEN = 4


def mask_column(values: Sequence[Any], kind: str, *, reader: str) -> list[str | None]:
    """The values as one reader gets them. NULL and the empty text stay as they are.

    A reader is the key of a user: the same value is the same pseudonym in every answer to that
    user, and another one to anybody else.
    """
    mask = MASKS[kind]
    known = {"": ""}
    found: list[str | None] = []
    for value in values:
        if value is None:
            found.append(None)
            continue
        text = value
        if not isinstance(value, str):  # one text for equal values
            text = msgspec.json.encode(value, order="deterministic", enc_hook=str).decode()
            text = text.strip('"')
        if text not in known:
            known[text] = mask(text, reader)
        found.append(known[text])
    return found


def pseudonym(text: str, reader: str) -> str:
    # The separator is no part of a key, so that no two readers have the same texts.
    digest = salted_hmac("mcp_django.masks", f"{reader}\x00{text}", algorithm="sha256")
    return f"p-{digest.hexdigest()[:DIGITS]}"


def last_characters(text: str, reader: str) -> str:
    shown = min(SHOWN_AT_END, max(0, len(text) - ALWAYS_HIDDEN))
    return f"...{text[len(text) - shown :]}"


#: Kinds of masks, by the word that `ModelExposure.mask` has for each.
MASKS: Mapping[str, Callable[[str, str], str]] = {
    # RFC 2606 reserves the domain: no mail is ever delivered there.
    "email": lambda text, reader: f"{pseudonym(text, reader)}@masked.invalid",
    "last4": last_characters,
    "text": pseudonym,
}
