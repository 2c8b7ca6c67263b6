"""What the generic tools have in common: functions of ours over whatever model is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure import aggregates
from mcp_django.exposure.describe import example
from mcp_django.exposure.find import find_records as find
from mcp_django.exposure.function_arguments import Arguments
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import reach_of
from mcp_django.exposure.signatures import Signature, resolve_hints
from mcp_django.exposure.tools import Lane, Outcome
from mcp_django.exposure.uris import SITE
from mcp_django.principal import READ
from mcp_django.protocol.content import Annotations, Content, TextContent
from mcp_django.protocol.results import ToolAnnotations, ToolDefinition, ToolResult

READING = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
#: Parameters that no caller fills in.
OURS = ("context", "rights", "return")


def about(description: str) -> Any:
    return msgspec.Meta(description=description)


Model = Annotated[str, about('Label of a model as list_models gives it, such as "shop.order".')]
Lookups = Annotated[
    dict[str, Any],
    about(
        'Django lookups and values: {"status": "paid", "total__gte": 100, '
        '"customer__country__in": ["FR"]}. Texts compare exactly; else use __iexact or '
        "__icontains. describe_model lists the paths and operators."
    ),
]
Key = Annotated[str | int | list[str | int], about("Primary key; a list for a composite key.")]
Names = list[str]
Alternatives = Annotated[
    list[dict[str, Any]], about("Alternatives: records that match any of these filters.")
]
Words = Annotated[str, about("Words; each must occur in a searchable field.")]
Fields = Annotated[Names, about("Paths to show. Without it, all.")]
Conditions = Annotated[dict[str, Any], about("As in find_records.")]


class RecordTool:
    """A function of ours as a tool. It takes the caller's rights and answers with JSON."""

    lane = Lane.QUERY

    def __init__(
        self, function: Callable[..., bytes], *, title: str, annotations: ToolAnnotations = READING
    ) -> None:
        self.name = function.__name__
        self.function = function
        hints = resolve_hints(function, where=f"{self.name}()")
        types = {name: kind for name, kind in hints.items() if name not in OURS}
        self.arguments = Arguments(
            self.name,
            Signature(
                given={},
                annotations=types,
                defaults=dict(function.__kwdefaults__ or {}),
                returns=bytes,
            ),
            descriptions={},
        )
        self.definition = ToolDefinition(
            name=self.name,
            title=title,
            description=" ".join((function.__doc__ or "").split()),
            input_schema=self.arguments.schema,
            annotations=annotations,
        )

    def exists_for(self, rights: Rights) -> bool:
        return rights.has_scopes(frozenset({READ}))

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        self.read(rights, given_of(arguments))

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        given = given_of(arguments)
        read = self.read(rights, given)
        try:
            return self.answer(context, rights, read)
        except ToolError as error:
            examples = examples_for(rights, given, tool=self.name)
            call = self.arguments.shown_call(examples, given.keys())
            kind = NotFound if isinstance(error, NotFound) else ToolError
            raise kind(f"{error}{call}") from None

    def read(self, rights: Rights, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the function. Raises ToolError with a call that would work."""
        examples = partial(examples_for, rights, given, tool=self.name)
        return self.arguments.read(given, examples=examples)

    def answer(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]
    ) -> Outcome:
        return result_of(self.function(rights, **arguments))


def given_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Some clients send null for what they leave out."""
    return {name: value for name, value in arguments.items() if value is not None}


def result_of(
    encoded: bytes, *, beside: Sequence[Content] = (), annotations: Annotations | None = None
) -> ToolResult:
    """Encoded once: as it is for programs, and as text for models."""
    return ToolResult(
        content=[TextContent(encoded.decode(), annotations), *beside],
        structured=msgspec.Raw(encoded),
        has_structured=True,
    )


def examples_for(rights: Rights, given: Mapping[str, Any], *, tool: str) -> dict[str, Any]:
    """Arguments that work for this caller, with the model that was meant if it is one."""
    exposures = [one for one in rights.exposures() if is_asked_by(tool, rights, one)]
    if not exposures:
        return {"uri": SITE}
    exposure = next((one for one in exposures if one.label == given.get("model")), exposures[0])
    reach = reach_of(rights, exposure)
    found: dict[str, Any] = {"uri": SITE, **example(reach)}
    if "filters" in found:
        found |= {"exclude": found["filters"], "any_of": [found["filters"]]}
    if reach.search:
        found["search"] = "a"
    if tool == "aggregate_records":
        found.pop("order_by", None)
        return found | aggregates.examples(reach, is_grouped="group_by" in given)
    if exposure.aggregates_only:
        return found
    keys = [part.name for part in exposure.model._meta.pk_fields]
    first = find(rights, exposure, {"limit": 1}).encoded_records
    for record in msgspec.json.decode(first):
        if record.keys() >= set(keys):
            found["pk"] = record[keys[0]] if len(keys) == 1 else [record[key] for key in keys]
            found["fields"] = list(record)[:2]
    return found


def is_asked_by(tool: str, rights: Rights, exposure: ModelExposure) -> bool:
    """Whether the model is one that this tool has an answer about."""
    if exposure.is_definition_only:
        return tool == "describe_model"
    if tool == "aggregate_records":
        return not rights.judges_objects(exposure.model)
    return not exposure.aggregates_only or tool == "describe_model"
