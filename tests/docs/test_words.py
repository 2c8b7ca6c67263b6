"""The words of the docs: plain American English, and none of the dialect that they once had."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import FENCE, PAGES, ROOT, name_of

LINES = (ROOT / "docs" / "words.txt").read_text().splitlines()
WORDS = dict(line.split(" -> ") for line in LINES if not line.startswith("#"))
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")


def prose(text: str) -> str:
    """Without code and addresses, and with every line where it was."""
    without = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    return CODE.sub(lambda code: "\n" * code[0].count("\n"), without)


def unwanted(text: str) -> list[str]:
    """Where a word stands that is listed, and what to write instead."""
    text = prose(text)
    return [
        f"line {text.count(chr(10), 0, found.start()) + 1}: {found[0]!r}, write: {instead}"
        for pattern, instead in WORDS.items()
        for found in re.finditer(rf"\b{pattern}\b".replace(" ", r"\s+"), text, re.IGNORECASE)
    ]


def test_a_listed_word_is_found_in_prose_and_not_in_code():
    text = "Nobody\nis told.\n\n`told`\n\n```text\ntold\n```\n\nWho is held\nback?\n"

    assert unwanted(text) == [
        "line 10: 'held\\nback', write: suppressed, delayed",
        "line 2: 'told', write: notified, said, reported",
    ]


def test_the_list_is_in_alphabetical_order():
    assert list(WORDS) == sorted(WORDS)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_has_a_listed_word(page):
    assert unwanted(page.read_text()) == []
