"""A page as a browser has it: its forms, what it would send of them, and the text to read."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, TypeAlias

Attributes: TypeAlias = list[tuple[str, str | None]]

#: A button is sent when it is pressed only, and files are no text.
NOT_SENT = frozenset({"submit", "button", "image", "reset", "file"})
BUTTONS = frozenset({"submit", "image"})
#: Characters of a page's text that are shown.
LONGEST_TEXT = 2000
#: Text that a person does not read on a page.
UNREAD = frozenset({"script", "style", "template", "select", "head"})


@dataclass(kw_only=True, eq=False)
class Option:
    value: str | None
    label: str = ""
    is_selected: bool = False
    is_disabled: bool = False


@dataclass(kw_only=True, eq=False)
class Control:
    """One input, select, textarea or button."""

    name: str
    #: The type of an input or button, "select", "select-multiple" or "textarea".
    kind: str
    value: str = ""
    is_checked: bool = True
    is_disabled: bool = False
    is_required: bool = False
    options: list[Option] = field(default_factory=list)
    label: str = ""
    id: str = ""
    #: The id of a form elsewhere on the page that it belongs to.
    form: str = ""

    def pairs(self) -> list[tuple[str, str]]:
        """What is sent of it, names and values."""
        if not self.name or self.is_disabled or not self.is_checked or self.kind in NOT_SENT:
            return []
        if self.kind not in ("select", "select-multiple"):
            return [(self.name, self.value)]
        chosen = [one for one in self.options if one.is_selected]
        if self.kind == "select":
            # Without a choice the first option is shown, and sent.
            first = [one for one in self.options if not one.is_disabled][:1]
            chosen = chosen[-1:] or first
        return [(self.name, one.value or "") for one in chosen if not one.is_disabled]


@dataclass(kw_only=True, eq=False)
class Form:
    method: str = "get"
    action: str = ""
    id: str = ""
    controls: list[Control] = field(default_factory=list)

    def pairs(self) -> list[tuple[str, str]]:
        return [pair for control in self.controls for pair in control.pairs()]

    @property
    def buttons(self) -> list[Control]:
        return [one for one in self.controls if one.kind in BUTTONS and not one.is_disabled]


def read_page(text: str) -> PageReader:
    """The forms of a page, in `loose` the controls that stand in no form, and its text."""
    reader = PageReader()
    reader.feed(text)
    reader.close()
    return reader


class PageReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[Form] = []
        self.loose = self.form = Form()
        self.labels: dict[str, str] = {}
        self.templates = 0
        #: Whether each open fieldset is disabled, and the group of options that is open.
        self.fieldsets: list[bool] = []
        self.is_group_disabled = False
        self.control: Control | None = None
        self.option: Option | None = None
        self.label: tuple[str, list[str]] | None = None
        #: The controls within the label that is open.
        self.labelled: list[Control] = []
        #: The text, and that of the content where the admin made the page: without its header and
        #: navigation.
        self.all_text: list[str] = []
        self.content: list[str] = []
        self.depth = self.unread = 0

    @property
    def text(self) -> str:
        """What a person would read, cut where it gets long."""
        text = folded(" ".join(self.content or self.all_text))
        return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"

    def close(self) -> None:
        """Give the controls their labels, and move them to the forms that they belong to."""
        super().close()
        ids = {one.id: one for one in self.forms if one.id}
        for home in (self.loose, *self.forms):
            for control in list(home.controls):
                control.label = folded(control.label) or self.labels.get(control.id, "")
                if control.kind == "textarea":
                    # "A single newline may be placed immediately after the start tag."
                    control.value = control.value.removeprefix("\n")
                for option in control.options:
                    option.label = folded(option.label)
                    option.value = option.label if option.value is None else option.value
                owner = ids.get(control.form)
                if owner is not None and owner is not home:
                    home.controls.remove(control)
                    owner.controls.append(control)

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        self.templates += tag == "template"
        self.unread += tag in UNREAD
        if tag == "div" and (self.depth or ("id", "content") in attrs):
            self.depth += 1
        opened = getattr(self, f"open_{tag}", None)
        if opened is not None and not self.templates:
            opened({name: value or "" for name, value in attrs})

    def handle_endtag(self, tag: str) -> None:
        self.templates = max(0, self.templates - (tag == "template"))
        self.unread = max(0, self.unread - (tag in UNREAD))
        self.depth = max(0, self.depth - (tag == "div"))
        closed = getattr(self, f"close_{tag}", None)
        if closed is not None and not self.templates:
            closed()

    def handle_data(self, data: str) -> None:
        if not self.unread:
            self.all_text.append(data)
            if self.depth:
                self.content.append(data)
        if self.templates:
            return
        if self.option is not None:
            self.option.label += data
        elif self.control is not None and self.control.kind == "textarea":
            self.control.value += data
        elif self.control is not None and self.control.kind in BUTTONS:
            self.control.label += data
        elif self.label is not None:
            self.label[1].append(data)

    def open_form(self, given: dict[str, str]) -> None:
        self.form = Form(
            method=given.get("method", "get").lower(),
            action=given.get("action", ""),
            id=given.get("id", ""),
        )
        self.forms.append(self.form)

    def close_form(self) -> None:
        self.form = self.loose

    def open_fieldset(self, given: dict[str, str]) -> None:
        self.fieldsets.append("disabled" in given)

    def close_fieldset(self) -> None:
        if self.fieldsets:
            self.fieldsets.pop()

    def open_label(self, given: dict[str, str]) -> None:
        self.label = given.get("for", ""), []
        self.labelled = []

    def close_label(self) -> None:
        if self.label is None:
            return
        target, parts = self.label
        self.label = None
        text = folded("".join(parts))
        if target:
            self.labels[target] = text
        for control in self.labelled:
            control.label = control.label or text

    def open_input(self, given: dict[str, str]) -> None:
        self.add(given, given.get("type", "text").lower())

    def open_button(self, given: dict[str, str]) -> None:
        self.control = self.add(given, given.get("type", "submit").lower())

    def open_textarea(self, given: dict[str, str]) -> None:
        self.control = self.add({**given, "value": ""}, "textarea")

    def open_select(self, given: dict[str, str]) -> None:
        self.control = self.add(given, "select-multiple" if "multiple" in given else "select")
        self.is_group_disabled = False

    def close_control(self) -> None:
        self.option = self.control = None

    close_select = close_textarea = close_button = close_control

    # Its end tag may be left out.
    def open_optgroup(self, given: dict[str, str]) -> None:
        self.option = None
        self.is_group_disabled = "disabled" in given

    def close_optgroup(self) -> None:
        self.option = None
        self.is_group_disabled = False

    def open_option(self, given: dict[str, str]) -> None:
        self.option = None
        if self.control is not None and self.control.kind.startswith("select"):
            self.option = Option(
                value=given.get("value"),
                is_selected="selected" in given,
                is_disabled="disabled" in given or self.is_group_disabled,
            )
            self.control.options.append(self.option)

    def close_option(self) -> None:
        self.option = None

    def add(self, given: dict[str, str], kind: str) -> Control:
        is_box = kind in ("checkbox", "radio")
        control = Control(
            name=given.get("name", ""),
            kind=kind,
            value=given.get("value", "on" if is_box else ""),
            is_checked=not is_box or "checked" in given,
            is_disabled="disabled" in given or any(self.fieldsets),
            is_required="required" in given,
            label=given.get("aria-label", ""),
            id=given.get("id", ""),
            form=given.get("form", ""),
        )
        self.form.controls.append(control)
        if self.label is not None:
            self.labelled.append(control)
        return control


def folded(text: str) -> str:
    return " ".join(text.split())


# What a form asks, as far as its HTML tells.

#: Controls that a person does not fill in, or that no text can fill.
NOT_ASKED = NOT_SENT | {"hidden"}
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
