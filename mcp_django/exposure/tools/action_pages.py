"""The pages that one call of an action answers, one after the other, and the values for each.

No state is kept between calls. Each call has the values of all pages, and sends all pages again
within one Django session, so a later page finds there what an earlier one left.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.forms import BaseForm

from mcp_django.exposure.admin_bridge.pages import ActionPage
from mcp_django.exposure.admin_bridge.relations import AdminDescriber
from mcp_django.exposure.admin_bridge.requests import CapturedMessage
from mcp_django.exposure.admin_bridge.written import WrittenModels
from mcp_django.exposure.permissions import Rights

#: Pages that one call answers.
MOST_PAGES = 10
#: Fields that a sentence names.
MOST_NAMES = 20
#: The members of an answer that hold the values of the pages after the first.
LATER = re.compile(r"page_([2-9]|10)")


@dataclass(frozen=True, kw_only=True)
class PageAnswers:
    """The values of one call, by the number of the page that they are for.

    Two pages may have fields of one name, so the values of each are apart from the others: those
    of the first page are members of the answer, those of the second are members of its `page_2`.
    """

    by_number: Mapping[int, Mapping[str, Any]]

    @classmethod
    def of_call(cls, answer: Mapping[str, Any] | None, *, menu: Collection[str]) -> PageAnswers:
        """`menu` are the names that the form of the menu takes."""
        by_number: dict[int, Mapping[str, Any]] = {}
        first: dict[str, Any] = {}
        for name, value in (answer or {}).items():
            later = LATER.fullmatch(name)
            # A field of the first page may have such a name. Its value is no object.
            if later is not None and isinstance(value, Mapping):
                by_number[int(later[1])] = value
            elif name not in menu:
                first[name] = value
        return cls(by_number=by_number if answer is None else {1: first, **by_number})

    def get(self, number: int) -> Mapping[str, Any] | None:
        return self.by_number.get(number)

    @property
    def last(self) -> int:
        """The number of the last page that there are values for, and 1 for none."""
        return max(self.by_number, default=1)

    def before(self, number: int) -> list[Mapping[str, Any]]:
        """The values of the pages that come before this one."""
        return [self.by_number.get(one, {}) for one in range(1, number)]

    def names_before(self, number: int) -> list[str]:
        return [
            name if at == 1 else f"page_{at}.{name}"
            for at, values in enumerate(self.before(number), start=1)
            for name in values
        ]

    def after(self, number: int) -> list[str]:
        """The members of the answer for pages that come after this one."""
        return [f"page_{one}" for one in sorted(self.by_number) if one > number]


@dataclass(kw_only=True)
class PageWalk:
    """The pages of one call so far, the last of which is not sent yet."""

    pages: list[ActionPage] = field(default_factory=list)
    messages: list[CapturedMessage] = field(default_factory=list)
    written: WrittenModels = field(default_factory=WrittenModels)
    #: Of the first page, as soon as it is known.
    first_digest: str = ""
    #: The confirmation that this call has spent.
    spent: str | None = None
    #: Whether no page is left to be sent.
    is_over: bool = False

    @property
    def page(self) -> ActionPage:
        return self.pages[-1]

    @property
    def digest(self) -> str:
        """Of all pages that a person would have seen."""
        digests = [one.digest for one in self.pages]
        if len(digests) == 1:
            return digests[0]
        return hashlib.sha256(" ".join(digests).encode()).hexdigest()


def later_schema(page: ActionPage) -> dict[str, Any]:
    """What an answer takes for a page, as a member of it from the second page on."""
    if page.number == 1:
        return page.schema
    name = f"page_{page.number}"
    return {"type": "object", "properties": {name: page.schema}, "required": [name]}


def declared_schema(form: type[BaseForm], rights: Rights) -> dict[str, Any]:
    """What the form takes that an action declares for its first page. The answer may have more:
    the values of later pages.
    """
    schema = AdminDescriber(rights).form(form())
    return {name: value for name, value in schema.items() if name != "additionalProperties"}


def names_to_correct(page: ActionPage, errors: Mapping[str, Any]) -> Sequence[str]:
    """The fields that errors name. A rule over several fields may name none: then all."""
    return [name for name in errors if name] or list(page.asks)[:MOST_NAMES]
