"""The methods of this server: who may ask for them, and the shape of what they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import msgspec

from mcp_django.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError, named
from mcp_django.protocol.revisions import Era, Revision

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
#: From the least to the most urgent.
LOG_LEVELS: tuple[str, ...] = get_args(LogLevel)

BOTH = frozenset(Era)
LEGACY = frozenset({Era.LEGACY})
MODERN = frozenset({Era.MODERN})


class ListParams(msgspec.Struct, frozen=True):
    cursor: str | None = None


class CallToolParams(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Any] | None = None


class URIParams(msgspec.Struct, frozen=True):
    uri: str


#: The specification has texts only, but clients send what a form of theirs holds.
Texts: TypeAlias = dict[str, str | int | float | bool | None]


class GetPromptParams(msgspec.Struct, frozen=True):
    name: str
    arguments: Texts | None = None


class CompletionArgument(msgspec.Struct, frozen=True):
    name: str
    value: str


class CompletionContext(msgspec.Struct, frozen=True):
    arguments: Texts | None = None


class CompleteParams(msgspec.Struct, frozen=True):
    """`ref` is {type: ref/prompt, name} or {type: ref/resource, uri}, the URI being a template."""

    ref: dict[str, Any]
    argument: CompletionArgument
    context: CompletionContext | None = None


class SetLevelParams(msgspec.Struct, frozen=True):
    level: LogLevel


class Wishes(msgspec.Struct, frozen=True):
    """What a subscription asks for."""

    toolsListChanged: bool = False
    promptsListChanged: bool = False
    resourcesListChanged: bool = False
    resourceSubscriptions: list[str] = []


class ListenParams(msgspec.Struct, frozen=True):
    notifications: Wishes


class NoParams(msgspec.Struct, frozen=True):
    pass


@dataclass(frozen=True, kw_only=True)
class Method:
    eras: frozenset[Era] = BOTH
    params: type[msgspec.Struct] = NoParams
    #: The member of params that the header Mcp-Name repeats.
    name_param: str = ""
    #: The answer needs a stream, or a session that has one.
    needs_streams: bool = False
    #: The answer is the same for every caller and needs neither thread nor database.
    is_constant: bool = False
    #: False: who asks learns nothing about anybody, and some clients ask all the time.
    is_recorded: bool = True


#: What is not here does not exist, whatever a revision has. Capabilities follow from it.
METHODS: dict[str, Method] = {
    "initialize": Method(eras=LEGACY, is_recorded=False),
    "ping": Method(eras=LEGACY, is_constant=True, is_recorded=False),
    "server/discover": Method(eras=MODERN, is_constant=True, is_recorded=False),
    "tools/list": Method(params=ListParams),
    "tools/call": Method(params=CallToolParams, name_param="name"),
    "resources/list": Method(params=ListParams),
    "resources/templates/list": Method(params=ListParams),
    "resources/read": Method(params=URIParams, name_param="uri"),
    "prompts/list": Method(params=ListParams),
    "prompts/get": Method(params=GetPromptParams, name_param="name"),
    "completion/complete": Method(params=CompleteParams),
    "resources/subscribe": Method(eras=LEGACY, params=URIParams, needs_streams=True),
    "resources/unsubscribe": Method(eras=LEGACY, params=URIParams, needs_streams=True),
    "logging/setLevel": Method(eras=LEGACY, params=SetLevelParams, needs_streams=True),
    "subscriptions/listen": Method(eras=MODERN, params=ListenParams, needs_streams=True),
}
#: Named in a header by clients even where this server has no such method.
NAME_PARAMS = {
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
    **{name: method.name_param for name, method in METHODS.items() if method.name_param},
}

Params = TypeVar("Params", bound=msgspec.Struct)


def served(name: str, revision: Revision, *, streams: bool = True) -> Method:
    """The method for a peer of this revision. Raises ProtocolError -32601.

    Without `streams`, methods that need them do not exist.
    """
    method = METHODS.get(name)
    if method is None or revision.era not in method.eras or (method.needs_streams and not streams):
        # 2026-07-28, basic/transports: an unknown method is 404; before, errors ride on 200.
        status = 404 if revision.era is Era.MODERN else 200
        raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {named(name)}", status=status)
    return method


def parse_params(method: str, params: dict[str, Any]) -> Any:
    """The typed params of a request. Raises ProtocolError -32602 that names the member."""
    try:
        return msgspec.convert(params, METHODS[method].params)
    except msgspec.ValidationError as error:
        raise ProtocolError(INVALID_PARAMS, f"Invalid params: {error}") from None
