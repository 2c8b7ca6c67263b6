"""A docstring read as what a model needs: what the tool does, and what each argument is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from inspect import cleandoc

SECTION = re.compile(r"(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments):\s*$")
ENTRY = re.compile(r"(?P<indent>\s+)\*{0,2}(?P<name>\w+)\s*(\([^)]*\))?\s*:(?P<text>.*)$")
FIELD = re.compile(
    r":(?P<kind>[a-z]+)(\s+[^:]*?)??(\s+\*{0,2}(?P<name>\w+))?\s*:(\s+(?P<text>.*))?$"
)
PARAMETER_FIELDS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})


@dataclass(frozen=True, kw_only=True)
class Docstring:
    """`text` without the parts about parameters, and those by the parameter's name."""

    text: str
    parameters: dict[str, str]


def parse_docstring(docstring: str) -> Docstring:
    """Read Google's "Args:" and reST's ":param x:". Never raises: other styles stay text."""
    reader = Reader()
    for line in cleandoc(docstring).splitlines():
        reader.read(line)
    parameters = {name: fold(lines) for name, lines in reader.parameters.items()}
    return Docstring(text=fold(reader.text), parameters=parameters)


def fold(lines: Iterable[str]) -> str:
    """One line per paragraph."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines))
    return "\n\n".join(folded for one in paragraphs if (folded := " ".join(one.split())))


class Reader:
    def __init__(self) -> None:
        self.text: list[str] = []
        self.parameters: dict[str, list[str]] = {}
        #: Where lines go that belong to what was read last.
        self._part: list[str] = []
        self._in_part = False
        #: The indentation of entries in a section, once its first entry was seen.
        self._entries: str | None = None
        self._in_section = False

    def read(self, line: str) -> None:
        belongs = self._in_part and (not line.strip() or line[0].isspace())
        if field := FIELD.match(line):
            self._in_section = False
            self._begin(field["name"], field["text"], kept=field["kind"] in PARAMETER_FIELDS)
        elif SECTION.match(line):
            self._begin(None, None, kept=False)
            self._entries, self._in_section = None, True
        elif not belongs:
            self._leave()
            self.text.append(line)
        elif entry := self._entry(line):
            self._entries = entry["indent"]
            self._begin(entry["name"], entry["text"], kept=True)
        else:
            self._part.append(line)

    def _entry(self, line: str) -> re.Match[str] | None:
        entry = ENTRY.match(line) if self._in_section else None
        if entry is None or self._entries not in (None, entry["indent"]):
            return None
        return entry

    def _begin(self, name: str | None, text: str | None, *, kept: bool) -> None:
        self._part, self._in_part = [text or ""], True
        if kept and name:
            self.parameters[name] = self._part

    def _leave(self) -> None:
        if self._in_part:
            self._in_part = False
            self.text.append("")
