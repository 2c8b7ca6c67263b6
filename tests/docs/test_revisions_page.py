from __future__ import annotations

from dataclasses import fields

from docs import revisions
from mcp_django.protocol.revisions import Features


def test_the_page_of_revisions_is_the_one_that_the_code_makes():
    assert revisions.PAGE.read_text() == revisions.page()


def test_every_feature_has_words():
    assert revisions.WORDS.keys() | {"era"} == {one.name for one in fields(Features)}
