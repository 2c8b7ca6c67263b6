"""What a caller was told about a model, and what it may say without telling more."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import msgspec

from mcp_django.exceptions import unknown
from mcp_django.exposure.fields import (
    DAY_OPERATORS,
    OPERATORS,
    PART_OPERATORS,
    kind_of,
    operators_of,
)
from mcp_django.exposure.paths import resolve, spellings
from mcp_django.exposure.query.aggregates import PARTS
from mcp_django.exposure.query.describe import MEASURED, describe
from tests.leaks.paths import RELATIONS, Route
from tests.leaks.places import Answer, Asker
from tests.leaks.site import HIDDEN

#: The argument that a refusal names first.
ARGUMENT = re.compile(r"(?:filters|exclude|any_of|having|group_by|metrics): ")
#: The relations whose records a metric counts.
COUNTED = re.compile(r"A metric can count (.+?), also at the end of a path")
UNKNOWN = re.compile(r".* cannot be used in (\w+)\. ", re.DOTALL)


class Knowledge:
    """The description of a model that one caller was given."""

    def __init__(self, root: Any, who: Asker) -> None:
        self.root = root
        label = root._meta.label_lower
        self.is_there = not who.ask("describe", label).is_refusal
        found = describe(who.rights, who.rights.exposure(label)) if self.is_there else {}
        self.description = msgspec.json.decode(msgspec.json.encode(found))
        fields = self.description.get("fields", [])
        numbers = [*fields, *self.description.get("more_aggregates", [])]
        self.returned = [one["name"] for one in fields]

        def described(use: str, word: str) -> list[str]:
            """The columns that can be used so: all but the exceptions."""
            if word not in self.description.get("uses", ""):
                return []
            return [one["name"] for one in numbers if use not in one.get("not", ())]

        filters = [*described("filter", "filtered"), *self.description.get("more_filters", [])]
        self.kinds = {name: kind_of(resolve(root, name).field) for name in filters}
        for name, kind in self.kinds.items():
            # What is in JSON is asked where records show it.
            if kind == "json" and name not in self.returned:
                self.kinds[name] = "other"
        groups = described("group", "grouped")
        self.measures = {
            one["name"]: one.get("metric", MEASURED.get(one["type"], ())) for one in numbers
        }
        measured = [name for name, functions in self.measures.items() if functions]
        uses = {
            "filters": filters,
            "order_by": described("order", "ordered"),
            "fields": self.returned,
            "group_by": groups,
            "metrics": [*dict.fromkeys([*groups, *measured])],
        }
        self.told = {
            use: {name: spelled(root, name) for name in names} for use, names in uses.items()
        }
        #: Computed columns, whose names no path has.
        self.computed = [one["name"] for one in self.description.get("computed", ())]
        #: What the groups of a call are ordered by, where it has the first group there is.
        self.columns = [*uses["group_by"][:1], "count"]
        self.types = {one["name"]: one["type"] for one in numbers}
        self.keys = {one for part in root._meta.pk_fields for one in spelled(root, part.name)}
        self.unique = {
            name
            for name in self.returned
            if "__" not in name and root._meta.get_field(name).unique
        }
        #: The models that relations lead to, where they may be followed.
        self.relations: dict[str, str] = self.description.get("relations", {})
        many: dict[str, str] = self.description.get("many_relations", {})
        included = self.description.get("only_in_include", ())
        filtered = self.description.get("only_in_filters", ())
        #: Those that lead to many: which make paths for filters, and which can be included.
        self.many = {name: label for name, label in many.items() if name not in included}
        self.included = [name for name in many if name not in filtered]
        told = COUNTED.search(self.description.get("paths", ""))
        counted = [] if told is None else told[1].split(", ")
        self.counted = [*self.many] if counted == ["them"] else counted
        #: What this caller was told about every model, by label.
        self.others: dict[str, Knowledge] = {}
        names = {
            one
            for told in self.told.values()
            for spellings_ in told.values()
            for one in spellings_
        }
        self._parts = {
            part
            for one in (*names, *self.relations, *self.many, *self.included)
            for part in one.split("__")
        }

    @cached_property
    def parts(self) -> set[str]:
        """Parts of names that a caller may know, so that nothing else is replaced in a twin."""
        return set().union(*(one._parts for one in self.others.values()))

    def allowed(self, what: str) -> list[str]:
        """The names that a refusal may offer."""
        if what == "having":
            return ["count__gte"]
        if what == "include":
            return self.included
        if what == "fields":
            return [*self.told[what], *self.computed]
        if what not in ("sum", "count", "max"):
            return list(self.told[use_of(what)])
        groups = self.told["group_by"]
        return [
            name
            for name, functions in self.measures.items()
            if what in functions or (what == "count" and name in groups)
        ]

    def hidden(self) -> list[str]:
        """What was told and should not have been. A filter that asks for NULL only is no more
        than the site declared."""
        found = []
        for name in {*self.kinds, *self.returned, *self.description.get("search", ())}:
            model, field = last_step(self.root, name)
            if field in HIDDEN.get(model, ()) and self.kinds.get(name) != "other":
                found.append(name)
        return found

    def explains(self, place: str, typed: str) -> bool:
        """Whether what was told says that this works."""
        use, typed = use_of(place), typed.removeprefix("-")
        if use == "order_by" and typed in self.keys:
            return True
        if use == "include":
            return typed in self.included or typed in self.relations
        if use == "columns":
            names = self.told.get("group_by", {}).get(self.columns[0], set())
            return typed in {"count", *names}
        if use == "fields" and typed in self.included and place != "file":
            return True
        if place in ("counts", "count") and self._is_counted(typed.split("__"), left=RELATIONS):
            return True
        return self._is_listed(use, typed) or (
            place != "file" and self._is_by_rule(use, typed.split("__"), left=RELATIONS)
        )

    def _is_listed(self, use: str, typed: str) -> bool:
        return any(
            typed == one or self._continues(use, typed.removeprefix(f"{one}__"), name)
            for name, names in self.told.get(use, {}).items()
            for one in names
            if typed.startswith(one)
        )

    def _is_by_rule(self, use: str, names: list[str], *, left: int) -> bool:
        """Whether the descriptions of the models on the way say so, one after the other."""
        first, *rest = names
        label = self.relations.get(first) or (use == "filters" and self.many.get(first))
        if not label or not left or (first in self.relations and not self._passes(use, first)):
            return False
        target = self.others[label]
        if not rest or rest[0] in OPERATORS["key"]:
            # What has no column here takes keys all the same.
            return use == "filters" and first not in self.returned
        return target._ends(use, rest) or target._is_by_rule(use, rest, left=left - 1)

    def _is_counted(self, names: list[str], *, left: int) -> bool:
        """Whether each description on the way says that the count of the related records works."""
        first, *rest = names
        if not rest:
            return left > 0 and first in self.counted
        label = self.relations.get(first)
        if label is None:
            label = self.many[first] if first in self.counted else None
        elif not self._passes("filters", first):
            label = None
        return label is not None and self.others[label]._is_counted(rest, left=left - 1)

    def _passes(self, use: str, name: str) -> bool:
        """Whether a list of the model leaves paths of the relation in this use."""
        if name not in self.returned or use not in ("filters", "order_by"):
            return True
        return name in self.told[use]

    def _ends(self, use: str, names: list[str]) -> bool:
        """Whether the rest of a path is a column of this model, and what may follow it."""
        if names[0] in {"pk", *self.keys} and len(names) == 1:
            return True
        own = {name: one for name, one in self.told.get(use, {}).items() if "__" not in name}
        typed = "__".join(names)
        if any(
            typed == one or self._continues(use, typed.removeprefix(f"{one}__"), name)
            for name, spellings_ in own.items()
            for one in spellings_
            if typed.startswith(one)
        ):
            return True
        # What is unique here is shared by the records that refer to it.
        return use in ("group_by", "metrics") and typed in self.unique

    def _continues(self, use: str, rest: str, name: str) -> bool:
        first, *more = rest.split("__")
        if use == "filters":
            return first in operators_of(self.kinds[name]) and (
                not more or (len(more) == 1 and more[0] in {*DAY_OPERATORS, *PART_OPERATORS})
            )
        return use == "group_by" and rest in PARTS.get(self.types[name], ())

    def is_offered(self, place: str, text: str, lookup: str) -> bool:
        """Whether a refusal may speak of what the lookup begins with: a part of a date."""
        return self.explains(place, f"{text}__{lookup.split('__')[0]}") or not lookup

    def bare(self, found: Answer, typed: str) -> str:
        """A refusal without the caller's own words, and without what follows from them alone."""
        said = ARGUMENT.sub("", found.said.decode(), count=1)
        if (match := UNKNOWN.match(said)) is not None:
            what = match[1]
            for names in (self.allowed(what), self.columns if what == "order_by" else []):
                if said == str(unknown(typed.removeprefix("-"), names, what)):
                    return f"unknown in {what}"
        label = self.root._meta.label_lower
        for shown in (ascii(typed)[:60], ascii(f"{label}.{typed}")[:80]):
            said = said.replace(shown, "NAME")
        return said


#: What a place, or a refusal, speaks of; anything else takes filters.
USES = {
    "order_by": "order_by", "order_by descending": "order_by", "cursor": "order_by",
    "fields": "fields", "get_record fields": "fields", "export": "fields", "part": "fields",
    "file": "fields", "group_by": "group_by",
    "include": "include", "metrics": "metrics", "counts": "metrics", "extremes": "metrics",
    "sum": "metrics", "count": "metrics", "max": "metrics", "aggregate order_by": "columns",
    "having": "nothing", "model": "nothing",
}  # fmt: skip


def use_of(place: str) -> str:
    return USES.get(place, "filters")


def spelled(root: Any, name: str) -> set[str]:
    return {name, *spellings(resolve(root, name))}


def last_step(root: Any, name: str) -> tuple[Any, str]:
    model, field = resolve(root, name.lstrip("^=@")).steps[-1]
    return model._meta.get_field(field).model if field else model, field


def twin_of(route: Route, knowledge: Knowledge) -> str:
    """A made-up path of the same length: no part that the caller was not told is left."""
    names = route.text.split("__")
    strange = [at for at, name in enumerate(names) if name not in {*knowledge.parts, "pk", "id"}]
    for at in strange or [len(names) - 1]:
        names[at] = made_up(names[at])
    return "__".join(names)


def made_up(name: str) -> str:
    return "".join(one if one == "_" else "qx"[at % 2] for at, one in enumerate(name))
