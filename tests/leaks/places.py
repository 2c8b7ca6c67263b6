"""Every place of a call that takes a path, and what is answered there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import aggregates, find
from mcp_django.exposure.query.arguments import AggregateRecords, FindRecords
from mcp_django.exposure.resources import models
from mcp_django.exposure.resources.completion import complete_resource
from mcp_django.exposure.tools.records import RECORD_TOOLS
from mcp_django.exposure.uris import COLLECTION, OBJECT
from mcp_django.models import Upload
from tests.exposure.function_tools import context_of

#: Pages of two, so that there are cursors; no model has as many rows as this allows for.
MOST_PAGES = 20


PSEUDONYM = re.compile(rb"p-[0-9a-f]{12}")


def numbered(said: bytes) -> bytes:
    """The same with a number in place of each pseudonym: which are equal is no secret."""
    numbers: dict[bytes, bytes] = {}
    return PSEUDONYM.sub(lambda match: numbers.setdefault(match[0], b"p-%d" % len(numbers)), said)


@dataclass(frozen=True, kw_only=True)
class Answer:
    is_refusal: bool
    said: bytes


class Asker:
    """One caller, and what was said to it. A cursor is compared by what it leads to."""

    def __init__(self, rights: Rights, cursors: set[str]) -> None:
        self.rights = rights
        self.cursors = cursors
        #: What calls were made of, for the test of the tests.
        self.used: set[str] = set()
        self._first: dict[str, str] = {}
        #: What records of a model can be grouped by, once the caller was told.
        self.groups_of: dict[str, list[str]] = {}

    def ask(self, place: str, label: str, *given: Any) -> Answer:
        try:
            said = numbered(PLACES[place](self, label, *given))
            return Answer(is_refusal=False, said=said)
        except ToolError as refusal:
            return Answer(is_refusal=True, said=str(refusal).encode())

    def page(self, label: str, **arguments: Any) -> find.Page:
        self.used.update(arguments)
        found = find.find_records(
            self.rights, self.rights.exposure(label), FindRecords(model=label, **arguments)
        )
        if found.next_cursor is not None:
            self.cursors.add(found.next_cursor)
        return found

    def records(self, label: str, **arguments: Any) -> bytes:
        found = self.page(label, **arguments)
        return found.encoded + (b" and more" if found.next_cursor else b"")

    def walk(self, label: str, **arguments: Any) -> bytes:
        """All pages. What it says depends on every cursor on the way."""
        said = []
        for _ in range(MOST_PAGES):
            found = self.page(label, limit=2, **arguments)
            said.append(found.encoded)
            if found.next_cursor is None:
                return b" ".join(said)
            arguments["cursor"] = found.next_cursor
        raise AssertionError("The pages do not end.")

    def cursor(self, label: str, path: str) -> bytes:
        """A cursor of another order."""
        if label not in self._first:
            self._first[label] = self.page(label, limit=1).next_cursor or "none"
        return self.records(label, order_by=[path], cursor=self._first[label])

    def groups(self, label: str, **arguments: Any) -> bytes:
        self.used.update(f"aggregate {name}" for name in arguments)
        asked = AggregateRecords(model=label, **arguments)
        return aggregates.aggregate_records(
            self.rights, self.rights.exposure(label), asked
        ).encoded

    def completed(self, template: str, label: str, argument: str, value: Any) -> bytes:
        """Nothing to offer is another answer than an argument that does not exist."""
        given = {"model": label}
        found = complete_resource(self.rights, template, argument, str(value), given=given)
        if found is None:
            raise ToolError("None")
        return msgspec.json.encode(found)

    def tool(self, name: str, **arguments: Any) -> bytes:
        self.used.add(name)
        result: Any = RECORD_TOOLS[name].call(context_of(self.rights), self.rights, arguments)
        found = msgspec.json.decode(result.content[0].text)
        found.pop("now", None)
        if cursor := found.pop("next", None):
            self.cursors.add(cursor)
        return msgspec.json.encode(found)

    def exported(self, label: str, **arguments: Any) -> bytes:
        self.used.add("export_records")
        export = RECORD_TOOLS["export_records"]
        if not export.exists_for(self.rights):
            raise ToolError("Unknown tool")
        export.call(context_of(self.rights), self.rights, {"model": label, **arguments})
        upload = Upload.objects.latest("pk")
        upload.delete()
        return bytes(upload.data)

    def included(self, label: str, name: str) -> bytes:
        return self.page(label, include=[name]).encoded

    def shown(self, label: str, path: str, key: Any) -> bytes:
        return find.get_record(self.rights, self.rights.exposure(label), key, fields=[path])

    def resource(self, uri: str) -> bytes:
        (found,) = models.read_resource(self.rights, uri).contents
        return found.text.encode() if found.text is not None else bytes(found.blob or b"")

    def resource_tool(self, uri: str) -> bytes:
        return self.tool("read_resource", uri=uri).replace(uri.encode(), b"")


def query_uri(label: str, key: str, value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    pairs = [f"{quote(key, safe='')}={quote(str(one), safe='')}" for one in values]
    return f"django://objects/{label}?{'&'.join(pairs)}"


def keyed_uri(kind: str, label: str, key: Any, *rest: str) -> str:
    parts: Sequence[Any] = key if isinstance(key, list | tuple) else [key]
    return "/".join(
        [f"django://{kind}", label, *(quote(str(one), safe="") for one in parts), *rest]
    )


Place = Callable[..., bytes]
#: Those take a path with a lookup, and a value.
CONDITIONS: dict[str, Place] = {
    "filters": lambda who, label, key, value: who.records(label, filters={key: value}),
    "exclude": lambda who, label, key, value: who.records(label, exclude={key: value}),
    "any_of": lambda who, label, key, value: who.records(label, any_of=[{key: value}]),
    "resource query": lambda who, label, key, value: who.resource(query_uri(label, key, value)),
    "aggregate filters": lambda who, label, key, value: who.groups(label, filters={key: value}),
    "aggregate exclude": lambda who, label, key, value: who.groups(label, exclude={key: value}),
    "aggregate any_of": lambda who, label, key, value: who.groups(label, any_of=[{key: value}]),
    "group_by": lambda who, label, key, value: who.groups(label, group_by=[key]),
    "metrics": lambda who, label, key, value: who.groups(label, metrics={"m": {"sum": key}}),
    "counts": lambda who, label, key, value: who.groups(label, metrics={"m": {"count": key}}),
    "extremes": lambda who, label, key, value: who.groups(label, metrics={"m": {"max": key}}),
    "having": lambda who, label, key, value: who.groups(
        label, group_by=who.groups_of[label][:1], having={key: value}
    ),
    "completion": lambda who, label, key, value: who.completed(
        COLLECTION.text, label, key, value[0] if isinstance(value, list) else value
    ),
}
#: The same through the tools, which say more and take longer.
TOOLS: dict[str, Place] = {
    "find_records": lambda who, label, key, value: who.tool(
        "find_records", model=label, filters={key: value}
    ),
    "read_resource": lambda who, label, key, value: who.resource_tool(
        query_uri(label, key, value)
    ),
    "aggregate_records": lambda who, label, key, value: who.tool(
        "aggregate_records", model=label, group_by=who.groups_of[label][:1], filters={key: value}
    ),
}
#: Those take a path, and the key of a record.
NAMES: dict[str, Place] = {
    "order_by": lambda who, label, path, key: who.walk(label, order_by=[path]),
    "order_by descending": lambda who, label, path, key: who.walk(label, order_by=[f"-{path}"]),
    "fields": lambda who, label, path, key: who.records(label, fields=[path]),
    "include": lambda who, label, path, key: who.included(label, path),
    "get_record fields": lambda who, label, path, key: who.shown(label, path, key),
    "aggregate order_by": lambda who, label, path, key: who.groups(
        label, group_by=who.groups_of[label][:1], order_by=[path], limit=50
    ),
    "search": lambda who, label, path, key: who.records(label, search=path[:100]),
    "cursor": lambda who, label, path, key: who.cursor(label, path),
    "file": lambda who, label, path, key: who.resource(
        keyed_uri("files", label, key, quote(path, safe=""))
    ),
    "model": lambda who, label, path, key: who.resource(
        f"django://models/{label}.{quote(path, safe='')}"
    ),
    "export": lambda who, label, path, key: who.exported(label, fields=[path]),
    "part": lambda who, label, path, key: who.tool(
        "get_record", model=label, pk=key, fields=[path], offset=0
    ),
}
#: Those take nothing.
OVERVIEWS: dict[str, Place] = {
    "list_models": lambda who, label: who.tool("list_models"),
    "list_resources": lambda who, label: who.tool("list_resources"),
    "describe": lambda who, label: who.tool("describe_model", model=label),
    "definition": lambda who, label: who.resource(f"django://models/{label}"),
    "all": lambda who, label: who.walk(label),
    "collection": lambda who, label: who.resource_tool(f"django://objects/{label}"),
}
#: Those take a key, or words.
RECORDS: dict[str, Place] = {
    "record": lambda who, label, key: find.get_record(
        who.rights, who.rights.exposure(label), key, all_computed=True
    ),
    "get_record": lambda who, label, key: who.tool("get_record", model=label, pk=key),
    "object": lambda who, label, key: who.resource(keyed_uri("objects", label, key)),
    "history": lambda who, label, key: who.tool("get_history", model=label, pk=key),
    "keys": lambda who, label, words: who.completed(OBJECT.text, label, "pk", words),
    "words": lambda who, label, words: who.records(label, search=words),
    "aggregate words": lambda who, label, words: who.groups(label, search=words),
}
PLACES = {**CONDITIONS, **TOOLS, **NAMES, **OVERVIEWS, **RECORDS}
