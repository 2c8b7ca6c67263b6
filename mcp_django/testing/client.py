"""A sync client that talks to the real ASGI application, in the test's thread and transaction."""

from __future__ import annotations

import asyncio
import enum
import itertools
import re
from base64 import b64decode
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, TypeVar

import msgspec
from asgiref.sync import async_to_sync, sync_to_async
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from mcp_django.audit.records import Gathered, records
from mcp_django.auth.windows import shared_counts
from mcp_django.handlers.tools import find_tool
from mcp_django.models import PersonalToken
from mcp_django.principal import SCOPES
from mcp_django.protocol.errors import METHOD_NOT_FOUND
from mcp_django.protocol.headers import SESSION, encode_params, encode_value
from mcp_django.protocol.methods import NAME_PARAMS
from mcp_django.protocol.negotiation import CAPABILITIES_KEY, CLIENT_KEY, REVISION_KEY
from mcp_django.protocol.questions import ELICITATION, SAMPLING
from mcp_django.protocol.revisions import MODERN, Era, Revision
from mcp_django.testing.listening import ChangeStream, PausedLoop, events_of
from mcp_django.transports.streamable_http import MCPApplication
from mcp_django.transports.threads import InlineLane, lanes

T = TypeVar("T")


class Choice(enum.Enum):
    #: The person agrees, and fills nothing in: for pages.
    ACCEPT = "accept"
    #: The person says no.
    DECLINE = "decline"
    #: The person closes the form.
    CANCEL = "cancel"


ACCEPT, DECLINE, CANCEL = Choice


#: A form with this content; what the model writes; folders; what a person chose without a form.
Answer: TypeAlias = Mapping[str, Any] | str | Sequence[str] | Choice
AnswerFunction: TypeAlias = Callable[[dict[str, Any]], Answer]
#: By the key of the question, or a function for all; functions get the question.
Answers: TypeAlias = Mapping[str, Answer | AnswerFunction] | AnswerFunction

#: Questions that a client is ready for.
CAPABILITIES: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}
#: Times that a client sends one request again.
MOST_ROUNDS = 20


class Unanswered(AssertionError):
    """The server asked, and the test has no answer to that. `questions` are by key."""

    def __init__(self, questions: Mapping[str, dict[str, Any]]) -> None:
        messages = [
            f"{key}: {question.get('params', {}).get('message', question['method'])}"
            for key, question in questions.items()
        ]
        super().__init__("Asked for " + "; ".join(messages))
        self.questions = questions


def answers_to(
    questions: Mapping[str, dict[str, Any]], answers: Answers | None
) -> dict[str, dict[str, Any]]:
    """What a client sends back. Raises Unanswered."""
    if callable(answers):
        answers = dict.fromkeys(questions, answers)
    unanswered = {key: one for key, one in questions.items() if key not in (answers or {})}
    if answers is None or unanswered:
        raise Unanswered(unanswered)
    return {key: answer_to(one, answers[key]) for key, one in questions.items()}


def answer_to(question: dict[str, Any], answer: Any) -> dict[str, Any]:
    if callable(answer):
        answer = answer(question)
    if isinstance(answer, Choice):
        return {"action": answer.value}
    if question["method"] == ELICITATION:
        return {"action": "accept", "content": dict(answer)}
    if question["method"] == SAMPLING:
        content = {"type": "text", "text": answer}
        return {"role": "assistant", "content": content, "model": "test", "stopReason": "endTurn"}
    return {"roots": [{"uri": uri} for uri in answer]}


class ProtocolFailure(AssertionError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(f"HTTP {status}, {error['code']}: {error['message']}")
        self.status = status
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


@dataclass(frozen=True, kw_only=True)
class HTTPAnswer:
    """One HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def messages(self) -> list[Any]:
        """The JSON-RPC messages in the body, from JSON, a batch or a stream of events."""
        if self.is_stream:
            return events_of(self.body)
        if not self.body:
            return []
        decoded = msgspec.json.decode(self.body)
        return decoded if isinstance(decoded, list) else [decoded]


@dataclass(frozen=True, kw_only=True)
class ToolAnswer:
    """What a tool answered."""

    is_error: bool
    text: str
    structured: Any = None
    #: What came before the answer: progress.
    notifications: list[dict[str, Any]] = field(default_factory=list)

    @property
    def data(self) -> Any:
        """What it says as JSON: its structured content, or else its text. Errors are sentences."""
        return msgspec.json.decode(self.text) if self.structured is None else self.structured

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows of a table as objects."""
        return rows_as_objects(self.data)


def rows_as_objects(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table, or of one inside a record, with the names of their columns."""
    return [
        {
            name: value
            for column, cell in zip(table["columns"], row, strict=True)
            for name, value in members_of(column, cell)
        }
        for row in table["rows"]
    ]


def members_of(column: Any, cell: Any) -> Iterator[tuple[str, Any]]:
    """A column of related records says theirs with its name: each cell is a table again."""
    if isinstance(column, str):
        yield column, cell
        return
    for name, columns in column.items():
        yield name, {**cell, "columns": columns}


Scope: TypeAlias = dict[str, Any]


@contextmanager
def kept_connections() -> Iterator[None]:
    """As Django's own test client: the test's transaction is not closed with a request."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)


CLIENT = {"name": "mcp_django.testing", "version": "1"}
SentHeaders: TypeAlias = Mapping[str, str | None]


class Client:
    """Speaks one revision, as one user.

    With `user`, a personal token is made for that user, with `scopes` and `token_options`
    (arguments of `PersonalToken.create`). With `token`, that one is sent. With neither, none.
    With `answers`, by key or from a function, it can be asked questions; the last ones are in
    `questions`.
    """

    def __init__(
        self,
        *,
        user: Any = None,
        token: str | None = None,
        scopes: Iterable[str] = SCOPES,
        revision: Revision | str = MODERN[-1],
        application: Any = None,
        path: str = "/mcp",
        host: str = "testserver",
        inline: bool = True,
        record: bool = False,
        answers: Answers | None = None,
        capabilities: Mapping[str, Any] | None = None,
        **token_options: Any,
    ) -> None:
        self._token_options = {"name": "test", "scopes": list(scopes), **token_options}
        self.token = token if user is None else self._create_token(user)
        self.revision = Revision(revision)
        self.application = application or MCPApplication.as_asgi()
        self.path, self.host = path, host
        #: False: real threads, for tests with more than one connection.
        self.inline = inline
        #: Whether calls leave their records in the test's transaction.
        self.record = record
        self.answers = answers
        if capabilities is None:
            capabilities = {} if answers is None else CAPABILITIES
        self.capabilities = capabilities
        #: The id of the session, which the server gave with the handshake.
        self.session: str | None = None
        #: The questions that the server asked during the last request, by key.
        self.questions: dict[str, dict[str, Any]] = {}
        self._ids = itertools.count(1)
        # Tests make more calls in a minute than people, for users with the same keys.
        shared_counts.forget()

    def as_user(self, user: Any) -> Self:
        """Return a client like this one, with a personal token of another user, in no session."""
        client = copy(self)
        client.token, client.session = self._create_token(user), None
        shared_counts.forget()
        return client

    def _create_token(self, user: Any) -> str:
        _, token = PersonalToken.create(user=user, **self._token_options)
        return token

    # MCP

    def discover(self) -> dict[str, Any]:
        return self.request("server/discover")

    def initialize(self) -> dict[str, Any]:
        """The answer of the server. If it starts a session, all further requests are in it."""
        params = {
            "protocolVersion": self.revision.value,
            # Answers are by key, and requests of the server have none.
            "capabilities": self.capabilities if self.answers is None else {},
            "clientInfo": CLIENT,
        }
        result = self.request("initialize", params)
        if self.session is not None:
            self.notify("notifications/initialized")
        return result

    def end_session(self) -> None:
        """End the session. Further requests are in none."""
        self.http("DELETE", headers=self.session_headers())
        self.session = None

    def list_tools(self) -> list[dict[str, Any]]:
        return self.list_all("tools/list", "tools")

    def list_resources(self) -> list[dict[str, Any]]:
        return self.list_all("resources/list", "resources")

    def list_prompts(self) -> list[dict[str, Any]]:
        return self.list_all("prompts/list", "prompts")

    def list_all(self, method: str, member: str) -> list[dict[str, Any]]:
        """Every definition, through all pages."""
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            page = self.request(method, params)
            found += page[member]
            if "nextCursor" not in page:
                return found
            params = {"cursor": page["nextCursor"]}

    def call_tool(self, tool_name: str, /, **arguments: Any) -> ToolAnswer:
        """Call a tool. Raises ProtocolFailure where the call itself was refused."""
        *notifications, final = self.exchange(
            "tools/call", {"name": tool_name, "arguments": arguments}
        )
        result = final["result"]
        texts = [block["text"] for block in result["content"] if block["type"] == "text"]
        return ToolAnswer(
            is_error=result.get("isError", False),
            text="\n".join(texts),
            structured=result.get("structuredContent"),
            notifications=notifications,
        )

    def assert_ok(self, tool_name: str, /, **arguments: Any) -> ToolAnswer:
        """Return the answer of a tool. Raises AssertionError with the text of an error."""
        answer = self.call_tool(tool_name, **arguments)
        if answer.is_error:
            raise AssertionError(f"{tool_name} failed: {answer.text}")
        return answer

    def assert_error(self, tool_name: str, /, match: str = "", **arguments: Any) -> ToolAnswer:
        """Return the error of a tool, whose text has a match of this regular expression."""
        answer = self.call_tool(tool_name, **arguments)
        if not answer.is_error:
            raise AssertionError(f"{tool_name} did not fail: {answer.text}")
        if not re.search(match, answer.text):
            raise AssertionError(f"{tool_name} failed without {match!r}: {answer.text}")
        return answer

    def list_names(self) -> set[str]:
        """Return the names of tools and prompts, the URIs of resources and their templates, and
        the labels of models that this client is told of."""
        names = {tool["name"] for tool in self.list_tools()}
        if "list_models" in names:
            models = self.assert_ok("list_models").data["models"]
            names |= {model["model"] for model in models}
        names |= {prompt["name"] for prompt in self.list_prompts()}
        names |= {resource["uri"] for resource in self.list_resources()}
        templates = self.list_all("resources/templates/list", "resourceTemplates")
        return names | {template["uriTemplate"] for template in templates}

    def assert_sees(self, *names: str) -> None:
        """Tools, prompts, resources and models of these names, URIs and labels are listed."""
        listed = self.list_names()
        if missing := [name for name in names if name not in listed]:
            listing = ", ".join(sorted(listed))
            raise AssertionError(f"Not listed: {', '.join(missing)}. Listed: {listing}.")

    def assert_hides(self, *names: str) -> None:
        """Tools, prompts, resources and models of these names, URIs and labels are not listed."""
        listed = self.list_names()
        if seen := [name for name in names if name in listed]:
            raise AssertionError(f"Listed: {', '.join(seen)}.")

    def get_prompt(self, prompt_name: str, /, **arguments: str) -> list[dict[str, Any]]:
        """The messages of a prompt. Raises ProtocolFailure where it was refused."""
        params = {"name": prompt_name, "arguments": arguments}
        messages: list[dict[str, Any]] = self.request("prompts/get", params)["messages"]
        return messages

    def read_resource(self, uri: str) -> Any:
        """Return what a resource holds: decoded JSON, another text as it is, or bytes."""
        (contents, *_) = self.request("resources/read", {"uri": uri})["contents"]
        if "blob" in contents:
            return b64decode(contents["blob"])
        text: str = contents["text"]
        is_json = contents.get("mimeType", "").endswith("json")
        return msgspec.json.decode(text) if is_json else text

    def complete(self, ref: str, name: str, value: str = "", /, **given: str) -> list[str]:
        """Values for an argument of a prompt, or for a variable of a resource template.

        `ref` is the name of the prompt or the template; `given` is what was chosen before.
        """
        kind, member = ("resource", "uri") if ":" in ref else ("prompt", "name")
        params: dict[str, Any] = {
            "ref": {"type": f"ref/{kind}", member: ref},
            "argument": {"name": name, "value": value},
        }
        if given:
            params["context"] = {"arguments": given}
        found: list[str] = self.request("completion/complete", params)["completion"]["values"]
        return found

    @contextmanager
    def listen(self, *uris: str, lists: Iterable[str] = ()) -> Iterator[Iterator[str]]:
        """Subscribe to resources and to lists, as "tools", while the block runs.

        It gets an iterator over what changes: URIs and names of lists. Each `next` waits for up to
        60 seconds. Raises AssertionError where nothing comes, or where the server refuses.
        """
        stream, loop = ChangeStream(self, uris, lists), PausedLoop()

        def run(coroutine: Coroutine[Any, Any, T]) -> T:
            with self._working(loop):
                return loop.run(coroutine)

        def changes() -> Iterator[str]:
            with suppress(StopAsyncIteration):
                while True:
                    yield run(stream.__anext__())

        with closing(loop):
            stream.subscribe()
            run(stream.open())
            try:
                yield changes()
            finally:
                run(stream.close())

    @asynccontextmanager
    async def alisten(self, *uris: str, lists: Iterable[str] = ()) -> AsyncIterator[ChangeStream]:
        """The same for async tests: `await anext(...)` waits."""
        stream = ChangeStream(self, uris, lists)
        with self._working(InlineLane()):
            await sync_to_async(stream.subscribe)()
            await stream.open()
            try:
                yield stream
            finally:
                await stream.close()

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result of a request. Raises ProtocolFailure."""
        result: dict[str, Any] = self.exchange(method, params)[-1]["result"]
        return result

    def exchange(self, method: str, params: Mapping[str, Any] | None = None) -> list[Any]:
        """All messages that answer a request, questions answered. Raises ProtocolFailure."""
        self.questions = {}
        told: list[Any] = []
        added: dict[str, Any] = {}
        for _ in range(MOST_ROUNDS):
            *notifications, final = self.send(method, {**(params or {}), **added})
            told += notifications
            result = final["result"]
            if result.get("resultType") != "input_required":
                return [*told, final]
            self.questions |= result["inputRequests"]
            added = {
                "inputResponses": answers_to(result["inputRequests"], self.answers),
                "requestState": result["requestState"],
            }
        raise Unanswered(self.questions)

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> list[Any]:
        """The messages that answer one request, questions among them. Raises ProtocolFailure."""
        answer = self.post_request(method, params)
        messages = answer.messages
        if "error" in messages[-1]:
            raise ProtocolFailure(answer.status, messages[-1]["error"])
        if method == "initialize":
            self.session = answer.headers.get(SESSION)
        return messages

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send what is not answered, in the session if there is one."""
        message = self.message(method, params)
        del message["id"]
        self.post(message, headers=self.routing_headers(message))

    def message(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A request of this client's revision."""
        params = dict(params or {})
        if self.revision.era is Era.MODERN:
            envelope = {
                REVISION_KEY: self.revision.value,
                CAPABILITIES_KEY: self.capabilities,
                CLIENT_KEY: CLIENT,
            }
            params["_meta"] = {**envelope, **params.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}

    def routing_headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        """The headers that repeat parts of the message."""
        if message["method"] == "initialize" and self.revision.era is Era.LEGACY:
            return {}
        headers = {"MCP-Protocol-Version": self.revision.value, **self.session_headers()}
        if self.revision.era is Era.MODERN:
            headers["Mcp-Method"] = message["method"]
            member = NAME_PARAMS.get(message["method"])
            if member and isinstance(message["params"].get(member), str):
                headers["Mcp-Name"] = encode_value(message["params"][member])
            if message["method"] == "tools/call":
                headers |= self.param_headers(message["params"])
        return headers

    def session_headers(self) -> dict[str, str]:
        return {} if self.session is None else {"Mcp-Session-Id": self.session}

    def param_headers(self, params: Mapping[str, Any]) -> dict[str, str]:
        """The headers that repeat arguments, as a client knows them that has listed the tools."""
        tool = find_tool(str(params.get("name")))
        arguments = params.get("arguments")
        if tool is None or not isinstance(arguments, Mapping):
            return {}
        return encode_params(arguments, tool.definition.param_headers)

    # HTTP

    def post(self, body: Any, *, headers: SentHeaders | None = None) -> HTTPAnswer:
        """Post bytes, or anything else as JSON."""
        encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return self.http("POST", encoded, headers=headers)

    def post_request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        headers: SentHeaders | None = None,
    ) -> HTTPAnswer:
        """The HTTP answer to one request, whatever it is."""
        message = self.message(method, params)
        return self.post(message, headers={**self.routing_headers(message), **(headers or {})})

    def http(
        self, verb: str, body: bytes = b"", *, headers: SentHeaders | None = None
    ) -> HTTPAnswer:
        """Send one HTTP request. A header of None is left out, a default one as well."""
        scope = self.scope(verb, headers=headers)
        with self._working(InlineLane()):
            return async_to_sync(self._run)(scope, body)

    @contextmanager
    def _working(self, lane: InlineLane) -> Iterator[None]:
        if not self.inline:
            yield
            return
        with self.recorded(), lanes.using(lane), kept_connections():
            yield

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Keep the records of calls, and write them at the end or forget them."""
        gathered = Gathered()
        with records.using(gathered):
            yield
        if self.record:
            gathered.write()

    def scope(self, verb: str, *, headers: SentHeaders | None = None) -> Scope:
        """What an ASGI server would tell the application about a request."""
        sent: dict[str, str | None] = {
            "Host": self.host,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self.token}" if self.token else None,
            **(headers or {}),
        }
        pairs = [
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in sent.items()
            if value is not None
        ]
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": verb,
            "scheme": "http",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": pairs,
            "client": ("127.0.0.1", 50000),
            "server": ("testserver", 80),
        }

    async def _run(self, scope: Scope, body: bytes) -> HTTPAnswer:
        """The whole response. Requests that the server sends meanwhile are refused."""
        events = iter([{"type": "http.request", "body": body, "more_body": False}])
        sent: list[dict[str, Any]] = []
        refusals: list[asyncio.Task[HTTPAnswer]] = []

        async def receive() -> dict[str, Any]:
            event = next(events, None)
            if event is None:
                await asyncio.get_running_loop().create_future()  # the client stays connected
            return event or {}

        async def send(event: dict[str, Any]) -> None:
            sent.append(event)
            refusals.extend(
                asyncio.ensure_future(self._run(*self._refusal(message)))
                for message in events_of(event.get("body", b""))
                if "method" in message and "id" in message
            )

        await self.application(scope, receive, send)
        await asyncio.gather(*refusals)
        start, *rest = sent
        headers: dict[str, str] = {}
        for name, value in start["headers"]:
            known = headers.get(name.decode())
            headers[name.decode()] = f"{known}, {value.decode()}" if known else value.decode()
        content = b"".join(event.get("body", b"") for event in rest)
        return HTTPAnswer(status=start["status"], headers=headers, body=content)

    def _refusal(self, question: Mapping[str, Any]) -> tuple[Scope, bytes]:
        """The answer to a request of the server: it comes without the key of its question."""
        error = {"code": METHOD_NOT_FOUND, "message": "This client answers no requests."}
        answer = {"jsonrpc": "2.0", "id": question["id"], "error": error}
        return self.scope("POST", headers=self.session_headers()), msgspec.json.encode(answer)
