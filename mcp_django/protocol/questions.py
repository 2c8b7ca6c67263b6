"""What a server asks of a client in the middle of a call, and how it is answered."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from mcp_django.protocol.content import AudioContent, Content, ImageContent, TextContent
from mcp_django.protocol.errors import INVALID_PARAMS, MISSING_CAPABILITY, ProtocolError

ELICITATION = "elicitation/create"
#: The same method, for a person who is sent to a page: what clients declare apart.
URL = "elicitation/create (url)"
SAMPLING = "sampling/createMessage"
ROOTS = "roots/list"
#: What a client declares that can be asked so.
NEEDED: dict[str, dict[str, Any]] = {
    ELICITATION: {"elicitation": {"form": {}}},
    URL: {"elicitation": {"url": {}}},
    SAMPLING: {"sampling": {}},
    ROOTS: {"roots": {}},
}


@dataclass(frozen=True, kw_only=True)
class Question:
    """One request to the client, without id: it travels inside a result."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> str:
        """What the client has to declare for it, as `takes` takes it."""
        return URL if self.params.get("mode") == "url" else self.method

    def as_wire(self) -> dict[str, Any]:
        return {"method": self.method, "params": self.params}


class Answered(msgspec.Struct, frozen=True):
    """What a person did with a form. `cancel`: it was closed without a choice."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class Root(msgspec.Struct, frozen=True):
    """A folder or a file of the client, that the person lets it work with."""

    uri: str
    name: str | None = None


class Roots(msgspec.Struct, frozen=True):
    roots: list[Root]


@dataclass(frozen=True, kw_only=True)
class SampledMessage:
    """What the client's model wrote."""

    content: Sequence[Content]
    #: Which model it was, as the client says.
    model: str
    stop_reason: str = ""

    @property
    def text(self) -> str:
        return "\n".join(one.text for one in self.content if isinstance(one, TextContent))


class Text(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    text: str


class Image(msgspec.Struct, frozen=True, tag="image", tag_field="type"):
    data: str
    mimeType: str


class Audio(msgspec.Struct, frozen=True, tag="audio", tag_field="type"):
    data: str
    mimeType: str


class Sampled(msgspec.Struct, frozen=True):
    role: Literal["user", "assistant"]
    content: Text | Image | Audio | list[Text | Image | Audio]
    model: str
    stopReason: str | None = None


def block_of(part: Text | Image | Audio) -> Content:
    """Raises ValueError for data that is not base64."""
    if isinstance(part, Text):
        return TextContent(part.text)
    kind = ImageContent if isinstance(part, Image) else AudioContent
    return kind(data=base64.b64decode(part.data, validate=True), mime_type=part.mimeType)


# What came back for a question, or None for what is no answer to it. msgspec raises ValueError.


def read_form(answer: Any) -> Answered | None:
    with suppress(ValueError):
        return msgspec.convert(answer, Answered)
    return None


def read_roots(answer: Any) -> list[Root] | None:
    with suppress(ValueError):
        return msgspec.convert(answer, Roots).roots
    return None


def read_sampled(answer: Any) -> SampledMessage | None:
    try:
        read = msgspec.convert(answer, Sampled)
        parts = read.content if isinstance(read.content, list) else [read.content]
        content = [block_of(part) for part in parts]
    except ValueError:
        return None
    return SampledMessage(content=content, model=read.model, stop_reason=read.stopReason or "")


class InputParams(msgspec.Struct, frozen=True):
    """What a client adds to a request that it sends again."""

    answers: dict[str, Any] = msgspec.field(default_factory=dict, name="inputResponses")
    sent_state: str | UnsetType = msgspec.field(default=UNSET, name="requestState")

    @property
    def state(self) -> str | None:
        return None if self.sent_state is UNSET else self.sent_state


INPUT = frozenset(InputParams.__struct_encode_fields__)


def parse_input(params: Mapping[str, Any]) -> InputParams:
    """Raises ProtocolError -32602 for members that are none."""
    try:
        return msgspec.convert(params, InputParams)
    except msgspec.ValidationError as error:
        raise ProtocolError(INVALID_PARAMS, f"Invalid params: {error}") from None


def takes(capabilities: Mapping[str, Any], needed: str) -> bool:
    """Whether a client with these capabilities may be asked so. `needed` is a key of NEEDED."""
    ((name, modes),) = NEEDED[needed].items()
    declared = capabilities.get(name)
    if not isinstance(declared, Mapping):
        return False
    # "An empty capabilities object is equivalent to declaring support for form mode only."
    is_empty = "form" not in declared and "url" not in declared
    return all(mode in declared or (mode == "form" and is_empty) for mode in modes)


def missing_capability(needed: Iterable[str]) -> ProtocolError:
    """The refusal of a call that has to ask in ways that the client did not declare."""
    capabilities: dict[str, Any] = {}
    for one in needed:
        for name, modes in NEEDED[one].items():
            capabilities[name] = {**capabilities.get(name, {}), **modes}
    return ProtocolError(
        MISSING_CAPABILITY,
        f"This request needs a client that declares: {', '.join(capabilities)}.",
        {"requiredCapabilities": capabilities},
        status=400,
    )
