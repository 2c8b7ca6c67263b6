"""What handlers answer, free of any revision. `render` turns it into one revision's wire shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp_django.protocol.content import Annotations, Content, ResourceContents, TextContent
from mcp_django.protocol.headers import ParamHeaders
from mcp_django.protocol.questions import Question
from mcp_django.protocol.revisions import Features


@dataclass(frozen=True, kw_only=True)
class ToolAnnotations:
    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


@dataclass(frozen=True, kw_only=True)
class WithEncodings:
    """What does not change, so that its bytes need to be made once: `render` keeps them here."""

    encodings: dict[Features, bytes] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )


@dataclass(frozen=True, kw_only=True)
class ToolDefinition(WithEncodings):
    name: str
    description: str
    input_schema: dict[str, Any]
    annotations: ToolAnnotations
    title: str = ""
    output_schema: dict[str, Any] | None = None
    #: Arguments that headers repeat. The schema says so to clients, in its own words.
    param_headers: ParamHeaders = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Resource(WithEncodings):
    uri: str
    name: str
    description: str
    title: str = ""
    mime_type: str = "application/json"
    size: int | None = None
    annotations: Annotations | None = None


@dataclass(frozen=True, kw_only=True)
class ResourceTemplate(WithEncodings):
    uri_template: str
    name: str
    description: str
    title: str = ""
    mime_type: str = "application/json"
    annotations: Annotations | None = None


@dataclass(frozen=True, kw_only=True)
class PromptArgument:
    name: str
    description: str = ""
    title: str = ""
    required: bool = False


@dataclass(frozen=True, kw_only=True)
class PromptDefinition(WithEncodings):
    name: str
    description: str
    title: str = ""
    arguments: Sequence[PromptArgument] = ()


Definition: TypeAlias = ToolDefinition | Resource | ResourceTemplate | PromptDefinition


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a tool answered. `structured` is JSON data, or `msgspec.Raw` of encoded JSON."""

    content: Sequence[Content] = ()
    structured: Any = None
    has_structured: bool = False
    is_error: bool = False
    #: What an error was made of, for the record of the call.
    refusal: Exception | None = None
    #: How many records were answered with or changed, for the record of the call.
    records: int | None = None
    #: The label of the model whose records were written, and their keys, for the same.
    model: str = ""
    keys: Sequence[Any] = ()

    @classmethod
    def error(cls, sentence: str) -> ToolResult:
        return cls(content=[TextContent(sentence)], is_error=True)

    @classmethod
    def of_error(cls, error: Exception) -> ToolResult:
        # A site's own sentence may have half a character, which UTF-8 has no place for.
        said = str(error).encode("utf-8", "replace").decode()
        return cls(content=[TextContent(said)], is_error=True, refusal=error)


@dataclass(frozen=True, kw_only=True)
class ListResult(WithEncodings):
    """One page of definitions. `key` is the result's member: tools, resources, ..."""

    key: str
    definitions: Sequence[Definition]
    next_cursor: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReadResult:
    contents: Sequence[ResourceContents]
    #: How many records they show, for the record of the call.
    records: int | None = None


@dataclass(frozen=True, kw_only=True)
class PromptMessage:
    """One message of a prompt. `role` is user or assistant."""

    content: Content
    role: str = "user"


@dataclass(frozen=True, kw_only=True)
class PromptResult:
    messages: Sequence[PromptMessage]
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class CompletionResult:
    """At most a hundred values. `total` counts them all where that is known."""

    values: Sequence[str]
    total: int | None = None
    has_more: bool = False


@dataclass(frozen=True, kw_only=True)
class InputRequired:
    """Questions in place of an answer: the client asks again with theirs, and with the state."""

    questions: Mapping[str, Question]
    state: str


@dataclass(frozen=True, kw_only=True)
class InitializeResult:
    """The legacy handshake, with the revision that was agreed on."""

    protocol_version: str
    #: In place of those of the server.
    instructions: str = ""


@dataclass(frozen=True, kw_only=True)
class DiscoverResult:
    """What a modern client learns instead of a handshake."""

    #: In place of those of the server.
    instructions: str = ""


@dataclass(frozen=True, kw_only=True)
class ListenResult:
    """The end of a subscription in good order. All its notifications come before."""

    #: Names of the lists that the client subscribes to, and URIs as it wrote them.
    lists: frozenset[str] = frozenset()
    uris: tuple[str, ...] = ()
    #: What the client is answered first: what it may subscribe to.
    honoured: Mapping[str, Any]
    subscription: str | int


@dataclass(frozen=True)
class EmptyResult:
    """Done, and nothing to say."""


Result: TypeAlias = (
    ToolResult
    | ListResult
    | ReadResult
    | PromptResult
    | CompletionResult
    | InputRequired
    | InitializeResult
    | DiscoverResult
    | ListenResult
    | EmptyResult
)
