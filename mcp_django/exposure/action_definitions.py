"""How the tool of an action is described: in few bytes, since every client reads it each time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from mcp_django.exposure.action_selections import MOST_RECORDS
from mcp_django.exposure.compat import AdminAction, Place
from mcp_django.exposure.form_schemas import NEWEST
from mcp_django.exposure.form_values import folded
from mcp_django.exposure.function_arguments import Arguments
from mcp_django.exposure.generic_tools import about
from mcp_django.exposure.signatures import Signature
from mcp_django.protocol.render import tool_definition
from mcp_django.protocol.results import ToolAnnotations, ToolDefinition

#: Bytes of a definition in tools/list.
MOST_BYTES = 700
LONGEST_TITLE = 50
SHORTEST_TEXT = 40
#: Staff see it in the list, and models ask for what they may.
UNDECLARED = "Declares no permission: who may view the model may run it."

Keys = Annotated[list[str | int], msgspec.Meta(min_length=1, max_length=MOST_RECORDS)]
Key = str | int
Filters = Annotated[dict[str, Any], about("Or these 3, as in find_records.")]
SELECTION: dict[Place, dict[str, Any]] = {
    Place.CHANGELIST: {
        "pks": Keys | UnsetType,
        "filters": Filters | UnsetType,
        "exclude": dict[str, Any] | UnsetType,
        "search": str | UnsetType,
    },
    Place.CHANGE_FORM: {"pk": Key},
    Place.RECORD_BUTTON: {"pk": Key},
    Place.MODEL_BUTTON: {},
}
REST: dict[str, Any] = {"answer": dict[str, Any] | UnsetType, "confirmation": str | UnsetType}
DRY_RUN: dict[str, Any] = {"dry_run": bool | UnsetType}


@lru_cache(maxsize=500)
def arguments_of(name: str, place: Place, *, dry_run: bool) -> Arguments:
    """What reads the arguments of one tool."""
    annotations = {**SELECTION[place], **REST, **(DRY_RUN if dry_run else {})}
    signature = Signature(
        given={},
        annotations=annotations,
        defaults={one: UNSET for one in annotations if one != "pk"},
        returns=bytes,
    )
    return Arguments(name, signature, descriptions={})


def definition_of(
    name: str, action: AdminAction, *, answer: Mapping[str, Any] | None = None
) -> ToolDefinition:
    """The definition, of at most MOST_BYTES. `answer` is the schema of a declared form, which is
    left out where it does not fit: the first answer of the tool tells it as well.
    """
    function = action.function
    is_read_only = bool(getattr(function, "mcp_read_only", False))
    return made_definition(
        name=name,
        title=folded(action.description)[:LONGEST_TITLE],
        text=description_of(action),
        is_marked=action.permissions is None,
        place=action.place,
        read_only=is_read_only,
        destructive=bool(getattr(function, "mcp_destructive", not is_read_only)),
        idempotent=bool(getattr(function, "mcp_idempotent", is_read_only)),
        dry_run=bool(getattr(function, "mcp_dry_run", False)),
        answer=None if answer is None else msgspec.json.encode(answer),
    )


def description_of(action: AdminAction) -> str:
    given = getattr(action.function, "mcp_description", "")
    written = inspect.getdoc(action.function) or ""
    return folded(given) or folded(written.split("\n\n")[0]) or folded(action.description)


@lru_cache(maxsize=500)
def made_definition(
    *,
    name: str,
    title: str,
    text: str,
    is_marked: bool,
    place: Place,
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    dry_run: bool,
    answer: bytes | None,
) -> ToolDefinition:
    """Made once for the same words, so that its bytes are, too."""
    annotations = ToolAnnotations(
        read_only=read_only, destructive=destructive, idempotent=idempotent, open_world=False
    )
    schema = brief(arguments_of(name, place, dry_run=dry_run).schema)
    mark = UNDECLARED if is_marked else ""

    def make(
        text: str, input_schema: dict[str, Any] = schema, title: str = title
    ) -> ToolDefinition:
        return ToolDefinition(
            name=name,
            title="" if title == text else title,
            description=" ".join(part for part in (sentence(text, mark), mark) if part),
            input_schema=input_schema,
            annotations=annotations,
        )

    if answer is not None:
        properties = {**schema["properties"], "answer": msgspec.json.decode(answer)}
        told = fitting(partial(make, input_schema={**schema, "properties": properties}), text)
        if told is not None:
            return told
    untitled = partial(make, title="")
    # A title says in other words what the name says already.
    return fitting(make, text) or fitting(untitled, text, shortest=1) or untitled("")


def brief(schema: dict[str, Any]) -> dict[str, Any]:
    """The same in fewer bytes: a choice of plain types is a list of them."""
    kinds = [one.get("type") for one in schema.get("anyOf", ()) if one.keys() == {"type"}]
    if kinds and len(kinds) == len(schema["anyOf"]):
        others = {name: value for name, value in schema.items() if name != "anyOf"}
        return {**others, "type": kinds}
    # An empty choice is refused with a sentence.
    kept = {name: value for name, value in schema.items() if name != "minItems"}
    return {name: brief(one) if isinstance(one, dict) else one for name, one in kept.items()}


def sentence(text: str, mark: str) -> str:
    """The text as a sentence of its own where another one follows."""
    return f"{text}." if mark and text and text[-1].isalnum() else text


def fitting(
    make: Callable[[str], ToolDefinition], text: str, *, shortest: int = SHORTEST_TEXT
) -> ToolDefinition | None:
    """The definition with as much of the text as there is room for, if there is for any."""
    kept, shortest = text, min(len(text), shortest)
    made = make(text)
    while (excess := size_of(made) - MOST_BYTES) > 0:
        # No character takes more than six bytes.
        kept = kept[: -max(2, excess // 6)].rstrip()
        if not kept or len(kept) < shortest:
            return None
        made = make(f"{kept}…")
    return made


def size_of(definition: ToolDefinition) -> int:
    """Bytes in tools/list, where the newest revision has most of them."""
    return len(msgspec.json.encode(tool_definition(definition, NEWEST))) + len(",")
