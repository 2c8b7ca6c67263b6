"""The pages about revisions, compared with what the code says of each."""

from __future__ import annotations

from dataclasses import fields

from docs import revisions
from mcp_django.protocol.revisions import Era, Features, Revision
from tests.docs.pages import ROOT, table

COMPATIBILITY = ROOT / "docs" / "reference" / "compatibility.md"
NOT_SERVED, NOTHING_MORE = "\u2014", "nothing more"


def words_of(revision, transport):
    """What the table of compatibility says of a transport, which tests/transports shows."""
    features, is_stream = revision.features, transport != "WSGI view"
    is_legacy = revision.era is Era.LEGACY
    if transport == "HTTP+SSE" and not is_legacy:
        return NOT_SERVED
    works = {
        "progress": is_stream,
        "logs": is_stream,
        "subscriptions": is_stream,
        "questions": features.input_required or (features.elicitation and is_stream),
        "resuming": is_legacy and transport == "Streamable HTTP",
        "batches": features.batches and transport != "HTTP+SSE",
    }
    return ", ".join(word for word in works if works[word]) or NOTHING_MORE


def test_the_table_of_compatibility_follows_from_the_features():
    transports = ("Streamable HTTP", "WSGI view", "HTTP+SSE", "stdio")

    rows = table(COMPATIBILITY, "## Revisions and transports")

    assert rows == [
        [revision.value, *(words_of(revision, transport) for transport in transports)]
        for revision in Revision
    ]


def test_the_page_of_revisions_is_the_one_that_the_code_makes():
    assert revisions.PAGE.read_text() == revisions.page()


def test_every_feature_has_words():
    assert revisions.WORDS.keys() | {"era"} == {one.name for one in fields(Features)}
