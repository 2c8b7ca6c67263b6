"""Try it: any tool or resource as oneself, from a form, through the same dispatch as a call."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec
from asgiref.sync import async_to_sync
from django.db import connections
from django.forms import CharField, Form, TextInput
from django.http import HttpRequest, HttpResponse

from mcp_django.admin.inspect.cost import every_page
from mcp_django.admin.inspect.impersonation import (
    call_as,
    principal_of_page,
    request_of,
    viewer_of,
)
from mcp_django.admin.inspect.try_forms import (
    ACTIONS,
    FIELD,
    ArgumentsForm,
    QuestionForm,
    questions_in,
    unseal_question,
)
from mcp_django.admin.pages import TRY_IT
from mcp_django.auth.authenticate import share_name
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import BUILT_IN
from mcp_django.exposure.questions import confirmations
from mcp_django.exposure.resources.models import list_resources
from mcp_django.principal import Principal
from mcp_django.protocol.headers import Headers, ParamHeaders, encode_params, encode_value
from mcp_django.protocol.methods import NAME_PARAMS
from mcp_django.protocol.negotiation import CAPABILITIES_KEY, CLIENT_KEY, REVISION_KEY
from mcp_django.protocol.results import ToolDefinition
from mcp_django.protocol.revisions import MODERN
from mcp_django.transports.calls.running import RunningCall
from mcp_django.transports.exchanges import Exchange, Outcome, Reply
from mcp_django.transports.http.endpoint import understand
from mcp_django.transports.serving import Service

# One call by the person at the page, on the way of any call: lanes, rights, limits, records.

CLIENT = {"name": "Django admin", "version": "1"}
#: The person at the page answers forms. There is no model and no folder behind it.
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}}
#: Statements that are shown, and characters of each.
MOST_QUERIES, LONGEST_QUERY = 200, 4000


@dataclass(frozen=True, kw_only=True)
class Query:
    sql: str
    milliseconds: float


@dataclass(frozen=True, kw_only=True)
class TrialCall:
    """What a call answered, and what it took."""

    message: dict[str, Any]
    bytes: int
    milliseconds: int
    #: None where the person may not see them.
    queries: list[Query] | None


@dataclass(frozen=True, kw_only=True)
class PageService(Service):
    """Serves the person who is logged in to the admin."""

    principal: Principal
    queries: list[Query] | None = field(default=None)

    def identify(self) -> Principal:
        return self.principal

    def serve(self, principal: Principal) -> Outcome:
        if self.queries is None:
            return super().serve(principal)
        with record_queries(self.queries):
            return super().serve(principal)


def try_call(
    request: HttpRequest,
    method: str,
    params: Mapping[str, Any],
    *,
    param_headers: ParamHeaders,
) -> TrialCall:
    """Make the call and wait for its answer."""
    exchange = exchange_of(method, params, param_headers)
    principal = principal_of_page(request)
    queries: list[Query] | None = [] if getattr(principal.user, "is_superuser", False) else None
    started = time.perf_counter()
    reply = async_to_sync(make_reply)(request, principal, exchange, queries)
    milliseconds = round((time.perf_counter() - started) * 1000)
    return TrialCall(
        message=msgspec.json.decode(reply.body),
        bytes=len(reply.body),
        milliseconds=milliseconds,
        queries=queries,
    )


def exchange_of(method: str, params: Mapping[str, Any], param_headers: ParamHeaders) -> Exchange:
    """The exchange that a client of the newest revision would begin."""
    revision = MODERN[-1].value
    meta = {REVISION_KEY: revision, CAPABILITIES_KEY: CAPABILITIES, CLIENT_KEY: CLIENT}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {**params, "_meta": meta},
    }
    sent = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": revision,
        "Mcp-Method": method,
        "Mcp-Name": encode_value(str(params[NAME_PARAMS[method]])),
        **encode_params(params.get("arguments", {}), param_headers),
    }
    headers = Headers((name.encode(), value.encode("latin-1")) for name, value in sent.items())
    return understand("POST", headers, msgspec.json.encode(message))


async def make_reply(
    request: HttpRequest, principal: Principal, exchange: Exchange, queries: list[Query] | None
) -> Reply:
    if exchange.refusal is not None:
        return exchange.refusal

    def make(**run: Any) -> Service:
        return PageService(
            request=request_of(principal.user, request),
            streams=False,
            principal=replace(principal, caches={}),
            queries=queries,
            **run,
        )

    call = RunningCall(exchange, make=make, caller=share_name(principal))
    call.start()
    return await call.reply()


@contextmanager
def record_queries(queries: list[Query]) -> Iterator[None]:
    """Keep the statements of this thread."""

    def record(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        started = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            if len(queries) < MOST_QUERIES:
                took = (time.perf_counter() - started) * 1000
                queries.append(Query(sql=statement(sql, params), milliseconds=round(took, 1)))

    with ExitStack() as stack:
        for connection in connections.all():
            stack.enter_context(connection.execute_wrapper(record))
        yield


def statement(sql: Any, params: Any) -> str:
    text = f"{sql}" if not params else f"{sql}\n-- {params!r}"
    return text if len(text) <= LONGEST_QUERY else f"{text[:LONGEST_QUERY]}…"


# The answer to a call as a page shows it. What it holds is text, or a picture of few kinds.

#: Kinds that browsers draw and run nothing of. No SVG: it is a document with scripts.
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
#: How a confirmation token stands in data and in sentences.
TOKEN = re.compile(rf'"{confirmations.ARGUMENT}":\s*"([\w-]{{{confirmations.LENGTH}}})"')
#: Characters of one text, and of one picture as base64.
LONGEST_TEXT, LONGEST_PICTURE = 100_000, 3_000_000


def result_context(tried: TrialCall, rights: Rights) -> dict[str, Any]:
    """What the template needs: `error`, or blocks, structured content and a confirmation.

    `rights` are those of the person who called.
    """
    found: dict[str, Any] = {"tried": tried}
    error = tried.message.get("error")
    if error is not None:
        return {**found, "error": str(error.get("message")), "data": pretty(error.get("data"))}
    result: dict[str, Any] = tried.message["result"]
    structured = result.get("structuredContent")
    found["is_error"] = bool(result.get("isError"))
    found["blocks"] = list(blocks_of(result, structured))
    found["structured"] = pretty(structured)
    found["confirmation"] = confirmation_in(result, rights)
    return found


def confirmation_in(result: Mapping[str, Any], rights: Rights) -> str:
    """The token that would confirm the call, or "".

    Some tools have it in their data, others in a sentence. A text in somebody's record may look
    like one, so each is verified.
    """
    texts = [block.get("text", "") for block in result.get("content", ())]
    for text in (json.dumps(result.get("structuredContent")), *texts):
        for token in TOKEN.findall(text):
            if confirmations.read_token(rights, token) is not None:
                return str(token)
    return ""


def blocks_of(result: Mapping[str, Any], structured: Any) -> Iterator[dict[str, Any]]:
    for block in result.get("content", ()):
        # Most tools say the same twice, for programs and for models.
        is_repeated = structured is not None and block["type"] == "text"
        if not is_repeated or json_in(block["text"]) != structured:
            yield block_of(block)
    for contents in result.get("contents", ()):
        yield contents_block(contents)


def block_of(block: Mapping[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "text":
            return text_block("Text", block["text"])
        case "image" | "audio" as kind:
            return binary_block(kind.capitalize(), block.get("mimeType"), block["data"])
        case "resource":
            return contents_block(block["resource"])
        case other:
            return text_block(other, pretty(block))


def contents_block(contents: Mapping[str, Any]) -> dict[str, Any]:
    mime_type = contents.get("mimeType")
    title = f"{contents['uri']} ({mime_type})"
    if "blob" in contents:
        return binary_block(title, mime_type, contents["blob"])
    text = contents.get("text", "")
    value = json_in(text) if mime_type == "application/json" else None
    return text_block(title, text if value is None else pretty(value))


def text_block(title: str, text: str) -> dict[str, Any]:
    return {"title": title, "text": cut(text)}


def binary_block(title: str, mime_type: Any, data: str) -> dict[str, Any]:
    size = len(data) * 3 // 4 - data.count("=", -2)
    found: dict[str, Any] = {"title": title, "note": f"{size} bytes of {mime_type}"}
    if mime_type in PICTURES and len(data) <= LONGEST_PICTURE:
        found["source"] = f"data:{mime_type};base64,{data}"
    return found


def json_in(text: str) -> Any:
    """The value that a text is the JSON of. None: of none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def pretty(value: Any) -> str:
    return "" if value is None else cut(json.dumps(value, indent=2, ensure_ascii=False))


def cut(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}\n… and {len(text) - LONGEST_TEXT} more characters."


# A call from a form, and its questions, until it has an answer.


def call_from_form(
    request: HttpRequest,
    method: str,
    name: str = "",
    *,
    form_of: Callable[[Any], Any],
    params_of: Callable[[Any], Mapping[str, Any]],
    param_headers: ParamHeaders | None = None,
) -> dict[str, Any]:
    """What the template needs: the form, and the result, the questions, or what is wrong."""
    viewer = viewer_of(request)
    bound_to = f"{viewer.identity}:{method}:{name}"
    sealed = request.POST.get(FIELD)
    if sealed is None:
        form, asked, answers = form_of(request.POST), None, []
    else:
        asked = unseal_question(sealed, bound_to=bound_to)
        if asked is None:
            return {"form": form_of(None), "is_stale": True}
        form, answers = form_of(asked.data), asked.forms(request.POST)
    context: dict[str, Any] = {"form": form}
    if not form.is_valid():
        return context
    if asked is not None and not all(one.is_valid() for one in answers):
        return {**context, "asking": questions_context(sealed, answers)}
    params, given = dict(params_of(form)), {one.key: one.answer for one in answers}
    if asked is not None:
        params |= {"inputResponses": given, "requestState": asked.state}
    tried = try_call(request, method, params, param_headers=param_headers or {})
    context["result"] = result_context(tried, viewer)
    following = questions_in(tried.message, form)
    if following is not None:
        forms = following.forms(before=given)
        context["asking"] = questions_context(following.seal(bound_to=bound_to), forms)
    return context


def questions_context(sealed: str | None, forms: list[QuestionForm]) -> dict[str, Any]:
    return {
        "field": FIELD,
        "sealed": sealed,
        "forms": forms,
        "actions": ACTIONS,
        "is_wrong": any(one.errors for one in forms),
    }


#: URIs to choose from as somebody types.
MOST_URIS = 200


class ResourceForm(Form):
    uri = CharField(
        label="URI",
        max_length=2000,
        widget=TextInput(
            attrs={"list": "mcp-uris", "autocomplete": "off", "class": "vLargeTextField"}
        ),
    )


def try_it_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """What there is to try on GET, or the form of one tool. The call itself on POST."""
    try:
        tools, uris, models = call_as(principal_of_page(request), request, offered_to)
    except ToolError as error:
        return TRY_IT.render(model_admin, request, refused=str(error))
    context: dict[str, Any] = {"tools": tools, "uris": uris, "resource_form": ResourceForm()}
    name = request.GET.get("tool")
    if name is not None:
        tool = next((one for one in tools if one.name == name), None)
        # As in a call: there is no such tool, or none for this person.
        context |= {"unknown": name} if tool is None else tool_context(request, tool, models)
    elif request.method == "POST":
        context |= resource_context(request)
    return TRY_IT.render(model_admin, request, **context)


def offered_to(
    context: CallContext, rights: Rights
) -> tuple[list[ToolDefinition], list[str], list[str]]:
    """The tools of `tools/list`, URIs of `resources/list`, and labels of models, for the person
    at the page.
    """
    tools = [
        one
        for result in every_page(context)
        for one in result.definitions
        if isinstance(one, ToolDefinition)
    ]
    uris = [one.uri for one in list_resources(rights)[:MOST_URIS]]
    return tools, uris, [one.label for one in rights.exposures()]


def tool_context(request: HttpRequest, tool: ToolDefinition, models: list[str]) -> dict[str, Any]:
    # Tools of the site may call something else a model.
    labels = models if tool.name in BUILT_IN else []
    form_of = partial(ArgumentsForm, tool.input_schema, models=labels)
    if request.method != "POST":
        return {"tool": tool, "form": form_of()}

    context = call_from_form(
        request,
        "tools/call",
        tool.name,
        form_of=form_of,
        params_of=lambda form: {"name": tool.name, "arguments": form.arguments},
        param_headers=tool.param_headers,
    )
    return {"tool": tool, **context}


def resource_context(request: HttpRequest) -> dict[str, Any]:
    context = call_from_form(
        request,
        "resources/read",
        form_of=ResourceForm,
        params_of=lambda form: {"uri": form.cleaned_data["uri"]},
    )
    return {**context, "resource_form": context["form"]}
