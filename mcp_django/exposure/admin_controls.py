"""What a browser would send of a piece of HTML: the forms in it and their successful controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TypeAlias

Attributes: TypeAlias = list[tuple[str, str | None]]

#: A button is sent when it is pressed only, and files are no text.
NOT_SENT = frozenset({"submit", "button", "image", "reset", "file"})
BUTTONS = frozenset({"submit", "image"})


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


@dataclass(frozen=True, kw_only=True)
class Page:
    forms: Sequence[Form]
    #: The controls that stand in no form.
    loose: Form


def read_page(text: str) -> Page:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader.page()


def successful(text: str) -> list[tuple[str, str]]:
    """What would be sent of a piece of HTML that stands in a form, such as a rendered widget."""
    return read_page(text).loose.pairs()


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[Form] = []
        self.loose = self.form = Form()
        self.labels: dict[str, str] = {}
        self.templates = 0
        #: For each open fieldset, and each open group of options, whether it is disabled.
        self.fieldsets: list[bool] = []
        self.groups: list[bool] = []
        self.control: Control | None = None
        self.option: Option | None = None
        self.label: tuple[str, list[str]] | None = None
        #: The controls within the label that is open.
        self.labelled: list[Control] = []
        self.is_first = False

    def page(self) -> Page:
        ids = {one.id: one for one in self.forms if one.id}
        for home in (self.loose, *self.forms):
            for control in list(home.controls):
                control.label = folded(control.label) or self.labels.get(control.id, "")
                for option in control.options:
                    option.label = folded(option.label)
                    option.value = option.label if option.value is None else option.value
                owner = ids.get(control.form)
                if owner is not None and owner is not home:
                    home.controls.remove(control)
                    owner.controls.append(control)
        return Page(forms=self.forms, loose=self.loose)

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        if tag == "template":
            self.templates += 1
        opened = getattr(self, f"open_{tag}", None)
        if opened is not None and not self.templates:
            opened({name: value or "" for name, value in attrs})

    def handle_endtag(self, tag: str) -> None:
        if tag == "template":
            self.templates = max(0, self.templates - 1)
        closed = getattr(self, f"close_{tag}", None)
        if closed is not None and not self.templates:
            closed()

    def handle_data(self, data: str) -> None:
        if self.templates:
            return
        if self.option is not None:
            self.option.label += data
        elif self.control is not None and self.control.kind == "textarea":
            # "A single newline may be placed immediately after the start tag": HTML drops it.
            self.control.value += data.removeprefix("\n") if self.is_first else data
            self.is_first = False
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
        kind = given.get("type", "text").lower()
        is_box = kind in ("checkbox", "radio")
        control = self.add(given, kind)
        control.value = given.get("value", "on" if is_box else "")
        control.is_checked = not is_box or "checked" in given

    def open_button(self, given: dict[str, str]) -> None:
        self.control = self.add(given, given.get("type", "submit").lower())
        self.control.value = given.get("value", "")

    def open_textarea(self, given: dict[str, str]) -> None:
        self.control = self.add(given, "textarea")
        self.is_first = True

    def open_select(self, given: dict[str, str]) -> None:
        self.control = self.add(given, "select-multiple" if "multiple" in given else "select")
        self.groups = []

    def close_select(self) -> None:
        self.option = self.control = None

    def close_control(self) -> None:
        self.control = None

    close_textarea = close_button = close_control

    def open_optgroup(self, given: dict[str, str]) -> None:
        self.option = None
        self.groups.append("disabled" in given)

    def close_optgroup(self) -> None:
        self.option = None
        if self.groups:
            self.groups.pop()

    def open_option(self, given: dict[str, str]) -> None:
        self.option = None
        if self.control is not None and self.control.kind.startswith("select"):
            self.option = Option(
                value=given.get("value"),
                is_selected="selected" in given,
                is_disabled="disabled" in given or any(self.groups),
            )
            self.control.options.append(self.option)

    def close_option(self) -> None:
        self.option = None

    def add(self, given: dict[str, str], kind: str) -> Control:
        control = Control(
            name=given.get("name", ""),
            kind=kind,
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
