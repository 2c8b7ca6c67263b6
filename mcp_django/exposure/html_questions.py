"""What a page asks and says, as far as its HTML tells."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from mcp_django.exposure.admin_controls import Control, Form, folded

#: Characters of a page's text that are shown.
LONGEST_TEXT = 2000
#: Text that a person does not read on a page.
UNREAD = frozenset({"script", "style", "template", "select", "head"})
#: Controls that a person does not fill in, or that no text can fill.
NOT_ASKED = frozenset({"hidden", "submit", "button", "image", "reset", "file"})
FORMATS = {"date": "date", "email": "email", "url": "uri", "datetime-local": "date-time"}


def asked_by(
    form: Form, *, ignored: frozenset[str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The schemas of what a form asks, by name of the control, and the names that are required."""
    asks: dict[str, dict[str, Any]] = {}
    required = []
    for control in form.controls:
        schema = schema_of(control, asks.get(control.name))
        if control.name in ignored or not control.name or control.is_disabled or schema is None:
            continue
        if control.label and control.kind != "radio":
            schema["title"] = control.label
        asks[control.name] = schema
        if control.is_required and control.name not in required:
            required.append(control.name)
    return asks, required


def schema_of(control: Control, known: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a control takes, or None for one that a person does not fill in."""
    kind = control.kind
    if kind in NOT_ASKED:
        return None
    if kind in ("select", "select-multiple"):
        options = [
            {"const": one.value, "title": one.label}
            for one in control.options
            if one.value and not one.is_disabled
        ]
        if kind == "select":
            return {"type": "string", "oneOf": options}
        return {"type": "array", "items": {"anyOf": options}}
    if kind == "radio":
        option = {"const": control.value, "title": control.label}
        others = known["oneOf"] if known else []
        return {"type": "string", "oneOf": [*others, option]}
    if kind == "checkbox":
        return {"type": "boolean", "default": control.is_checked}
    if kind == "number":
        return {"type": "number"}
    return {"type": "string", **({"format": FORMATS[kind]} if kind in FORMATS else {})}


def text_of(html: str) -> str:
    """What a person would read, cut where it gets long."""
    reader = TextReader()
    reader.feed(html)
    reader.close()
    text = folded(" ".join(reader.content or reader.all))
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


class TextReader(HTMLParser):
    """The text of a page's content, without its header and navigation where the admin made it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.all: list[str] = []
        self.content: list[str] = []
        self.depth = 0
        self.unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNREAD:
            self.unread += 1
        if tag == "div" and (self.depth or ("id", "content") in attrs):
            self.depth += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in UNREAD:
            self.unread = max(0, self.unread - 1)
        if tag == "div" and self.depth:
            self.depth -= 1

    def handle_data(self, data: str) -> None:
        if not self.unread:
            self.all.append(data)
            if self.depth:
                self.content.append(data)
