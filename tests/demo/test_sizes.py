"""What an assistant has to read costs its user money."""

from __future__ import annotations


def test_pages_and_definitions_are_short(demo):
    texts = demo.ask("texts_for", "dispatcher")

    sizes = {name: len(text.encode()) for name, text in texts.items()}
    assert sizes["page"] <= 5 * 1024
    assert sizes["description"] <= 3 * 1024
    assert sizes["tools"] <= 15.5 * 1024
    assert sizes["action"] <= 600
