"""A call that works, for callers whose call did not: their own where it can be repaired.

What is wrong is found out by trying calls as the caller could, up to the query of a page or of
groups: an argument, a condition or a name that is refused is left out, or a similar name takes its
place. So nothing is shown that the caller could not have found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from django.db.models.constants import LOOKUP_SEP

from mcp_django.exceptions import ToolError
from mcp_django.exposure.functions.arguments import (
    LONGEST_SHOWN,
    Arguments,
    as_declared,
    is_repeatable,
)
from mcp_django.exposure.paths import FILTER, GROUP, ORDER, RETURN
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import allowed_paths

#: Calls that are tried, and seconds after which no other is, before a call that was refused is
#: answered with an example of the site's own.
MOST_TRIED_CALLS, LONGEST_TRIAL = 24, 1.0
#: The names that an argument takes, by their use.
USES = {
    "filters": FILTER,
    "exclude": FILTER,
    "order_by": ORDER,
    "fields": RETURN,
    "group_by": GROUP,
}


class Tired(Exception):
    """Enough was tried."""


class CallRepair:
    """One call of a tool that reads, part by part."""

    def __init__(
        self,
        reader: Arguments,
        rights: Rights,
        arguments: Mapping[str, Any],
        *,
        run: Callable[[Mapping[str, Any]], Any],
        examples: Callable[[], Mapping[str, Any]],
    ) -> None:
        self.reader = reader
        self.rights = rights
        self.sent = self._with_known_names(
            as_declared(arguments, reader.schema, takes_empty=False)
        )
        self._run = run
        self._make_examples = examples
        self._left = MOST_TRIED_CALLS
        self._end = time.monotonic() + LONGEST_TRIAL

    @cached_property
    def examples(self) -> Mapping[str, Any]:
        """Arguments that work for this caller, of the model of the call if there is one."""
        return self._make_examples()

    def sentence(self) -> str:
        """A sentence with the call that works. Empty where there is none."""
        try:
            repaired = self._repaired()
        except Tired:
            repaired = None
        if repaired is not None and (shown := self.reader.shown_call(repaired, repaired.keys())):
            return shown
        if time.monotonic() > self._end:
            return ""
        for names in (self.sent.keys(), ()):
            shown = self.reader.shown_call(self.examples, names)
            arguments = {
                name: value
                for name, value in self.examples.items()
                if name in self.reader.annotations
                and (name in self.reader.required or name in names)
            }
            if shown and self._fits(arguments):
                return shown
        return ""

    def _repaired(self) -> dict[str, Any] | None:
        call = self._required()
        if call is None:
            return None
        for name in self.reader.annotations:
            if name not in self.sent or name in call:
                continue
            value = self._working_part(call, name, self.sent[name])
            example = self.examples.get(name) if value is None else None
            if example is not None and self._works({**call, name: example}):
                value = example
            if value is not None:
                call[name] = value
        return call

    def _required(self) -> dict[str, Any] | None:
        """The arguments that no call can do without, or None where they would be a guess."""
        call: dict[str, Any] = {}
        for name in self.reader.required:
            if name == "model":
                label = self._label(self.sent.get(name))
                if label is None:
                    return None
                call[name] = label
        others = [name for name in self.reader.required if name not in call]
        for source in (self.sent, self.examples):
            found = {name: source.get(name) for name in others}
            if all(is_repeatable(value) for value in found.values()) and self._works(
                {**call, **found}
            ):
                return {**call, **found}
            if not others:
                return None
        return None

    def _label(self, given: Any) -> str | None:
        """The model that was named, also without its app. Not one with a similar name: the answer
        about a model that is hidden is that about one that does not exist.
        """
        if not isinstance(given, str):
            return None
        labels = {one.label: one.label for one in self.rights.exposures()}
        names = {label.partition(".")[2]: label for label in labels} | labels
        return names.get(given.lower())

    def _working_part(self, call: Mapping[str, Any], name: str, value: Any) -> Any:
        """What works of an argument with the arguments before it. None: nothing does."""
        if is_repeatable(value) and self._works({**call, name: value}):
            return value
        if isinstance(value, dict):
            members: dict[str, Any] = {}
            for key, member in value.items():
                for similar in self._similar(call, name, key):
                    wider = {**members, similar: member}
                    if is_repeatable({similar: member}) and self._works({**call, name: wider}):
                        members = wider
                        break
            return members or None
        if isinstance(value, list):
            items: list[Any] = []
            for item in value:
                for similar in self._similar(call, name, item):
                    if is_repeatable(similar) and self._works({**call, name: [*items, similar]}):
                        items.append(similar)
                        break
            return items or None
        return None

    def _similar(self, call: Mapping[str, Any], argument: str, name: Any) -> Iterator[Any]:
        """The name, and then what may have been meant by it, out of what the caller may use."""
        yield name
        if argument not in USES or not isinstance(name, str):
            return
        exposure = self.rights.exposed.by_label[call["model"]]
        known = allowed_paths(self.rights, exposure).names(USES[argument])
        sign = "-" if name.startswith("-") else ""
        bare = name[:LONGEST_SHOWN].removeprefix("-")
        base, separator, operator = bare.rpartition(LOOKUP_SEP)
        for text, rest in ((bare, ""), (base, separator + operator)):
            # A path with fewer parts would say something else.
            depth = text.count(LOOKUP_SEP)
            paths = [path for path in known if path.count(LOOKUP_SEP) == depth]
            for close in get_close_matches(text, paths, n=1):
                yield f"{sign}{close}{rest}"

    def _works(self, arguments: Mapping[str, Any]) -> bool:
        if not self._left or time.monotonic() > self._end:
            raise Tired
        self._left -= 1
        return self._fits(arguments)

    def _fits(self, arguments: Mapping[str, Any]) -> bool:
        try:
            self._run(arguments)
        except ToolError:
            return False
        return True

    def _with_known_names(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Each argument under the name that errors suggest for it, if nothing else has that."""
        known = self.reader.annotations
        found = {name: value for name, value in arguments.items() if name in known}
        for name in list(arguments)[:MOST_TRIED_CALLS]:
            if name not in known:
                for close in get_close_matches(name[:LONGEST_SHOWN], known, n=1):
                    found.setdefault(close, arguments[name])
        return found
