"""The methods of this server: who may ask for them, and the shape of what they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from mcp_django.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError
from mcp_django.protocol.revisions import Era, Revision

BOTH = frozenset(Era)
LEGACY = frozenset({Era.LEGACY})
MODERN = frozenset({Era.MODERN})


class ListParams(msgspec.Struct, frozen=True):
    cursor: str | None = None


class CallToolParams(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Any] | None = None


class ReadResourceParams(msgspec.Struct, frozen=True):
    uri: str


class GetPromptParams(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, str] | None = None


class CompletionArgument(msgspec.Struct, frozen=True):
    name: str
    value: str


class CompletionContext(msgspec.Struct, frozen=True):
    arguments: dict[str, str] | None = None


class CompleteParams(msgspec.Struct, frozen=True):
    """`ref` is {type: ref/prompt, name} or {type: ref/resource, uri}, the URI being a template."""

    ref: dict[str, Any]
    argument: CompletionArgument
    context: CompletionContext | None = None


class NoParams(msgspec.Struct, frozen=True):
    pass


@dataclass(frozen=True, kw_only=True)
class Method:
    eras: frozenset[Era] = BOTH
    params: type[msgspec.Struct] = NoParams
    #: The member of params that the header Mcp-Name repeats.
    name_param: str = ""
    #: The answer is the same for every caller and needs neither thread nor database.
    is_constant: bool = False


#: What is not here does not exist, whatever a revision has. Capabilities follow from it.
METHODS: dict[str, Method] = {
    "initialize": Method(eras=LEGACY, is_constant=True),
    "ping": Method(eras=LEGACY, is_constant=True),
    "server/discover": Method(eras=MODERN, is_constant=True),
    "tools/list": Method(params=ListParams),
    "tools/call": Method(params=CallToolParams, name_param="name"),
    "resources/list": Method(params=ListParams),
    "resources/templates/list": Method(params=ListParams),
    "resources/read": Method(params=ReadResourceParams, name_param="uri"),
    "prompts/list": Method(params=ListParams),
    "prompts/get": Method(params=GetPromptParams, name_param="name"),
    "completion/complete": Method(params=CompleteParams),
}
#: Named in a header by clients even where this server has no such method.
NAME_PARAMS = {
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
    **{name: method.name_param for name, method in METHODS.items() if method.name_param},
}

Params = TypeVar("Params", bound=msgspec.Struct)


def served(name: str, revision: Revision) -> Method:
    """The method for a peer of this revision. Raises ProtocolError -32601."""
    method = METHODS.get(name)
    if method is None or revision.era not in method.eras:
        # 2026-07-28, basic/transports: an unknown method is 404; before, errors ride on 200.
        status = 404 if revision.era is Era.MODERN else 200
        raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {name[:80]}", status=status)
    return method


def parse_params(method: str, params: dict[str, Any]) -> Any:
    """The typed params of a request. Raises ProtocolError -32602 that names the member."""
    try:
        return msgspec.convert(params, METHODS[method].params)
    except msgspec.ValidationError as error:
        raise ProtocolError(INVALID_PARAMS, f"Invalid params: {error}") from None
