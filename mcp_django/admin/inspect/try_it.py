"""Try it: any tool or resource as oneself, through the same dispatch as a call."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.db import connections
from django.forms import CharField, Form, HiddenInput, Textarea, TextInput
from django.http import HttpRequest, HttpResponse

from mcp_django.admin.inspect.access import records_table
from mcp_django.admin.inspect.cost import every_page, tokens_in
from mcp_django.admin.inspect.impersonation import call_as, principal_of_page, request_of
from mcp_django.admin.pages import TRY_IT
from mcp_django.auth.authenticate import share_name
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.rights import may
from mcp_django.exposure.functions.json_schemas import Examples
from mcp_django.exposure.inspection import OwnRights, sample_rows
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.describe import example
from mcp_django.exposure.resources.models import list_resources
from mcp_django.exposure.tools.records import (
    RECORD_TOOLS,
    WriteTool,
    has_pages,
    is_asked_by,
    writing_of,
)
from mcp_django.exposure.uris import SITE
from mcp_django.principal import Principal
from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.headers import Headers, ParamHeaders, encode_params, encode_value
from mcp_django.protocol.jsonrpc import decode_json
from mcp_django.protocol.methods import NAME_PARAMS
from mcp_django.protocol.negotiation import CAPABILITIES_KEY, CLIENT_KEY, REVISION_KEY
from mcp_django.protocol.results import ToolDefinition
from mcp_django.protocol.revisions import MODERN
from mcp_django.transports.call import RunningCall
from mcp_django.transports.endpoint import understand
from mcp_django.transports.exchanges import Exchange, Outcome, Reply
from mcp_django.transports.serving import Service

logger = logging.getLogger("mcp_django")

# One call by the person at the page, on the way of any call: lanes, rights, limits, records.

CLIENT = {"name": "Django admin", "version": "1"}
#: The person at the page answers questions. There is no model and no folder behind it.
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}}
#: Statements that are shown, and characters of each.
MOST_QUERIES, LONGEST_QUERY = 200, 4000


@dataclass(frozen=True, kw_only=True)
class PageService(Service):
    """Serves the person who is logged in to the admin."""

    principal: Principal
    #: Takes the statements. None where the person may not see them.
    queries: list[dict[str, Any]] | None = None

    def identify(self) -> Principal:
        return self.principal

    def serve(self, principal: Principal) -> Outcome:
        if self.queries is None:
            return super().serve(principal)
        with record_queries(self.queries):
            return super().serve(principal)


def try_call(
    request: HttpRequest, method: str, params: Mapping[str, Any], *, param_headers: ParamHeaders
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make the call. Return the message that answers it, and what it took, for the template."""
    exchange = exchange_of(method, params, param_headers)
    principal = principal_of_page(request)
    queries: list[Any] | None = [] if getattr(principal.user, "is_superuser", False) else None
    service = partial(
        PageService,
        request=request_of(principal.user, request),
        streams=False,
        principal=replace(principal, caches={}),
        queries=queries,
    )
    started = time.perf_counter()
    reply = async_to_sync(make_reply)(exchange, service, caller=share_name(principal))
    figures = {
        "bytes": len(reply.body),
        "tokens": tokens_in(reply.body),
        "milliseconds": round((time.perf_counter() - started) * 1000),
        "queries": queries,
    }
    return msgspec.json.decode(reply.body), figures


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


async def make_reply(exchange: Exchange, make: Callable[..., Service], *, caller: str) -> Reply:
    if exchange.refusal is not None:
        return exchange.refusal
    call = RunningCall(exchange, make=make, caller=caller)
    call.start()
    return await call.reply()


@contextmanager
def record_queries(queries: list[dict[str, Any]]) -> Iterator[None]:
    """Keep the statements of this thread."""

    def record(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        started = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            if len(queries) < MOST_QUERIES:
                took = (time.perf_counter() - started) * 1000
                queries.append({"sql": statement(sql, params), "milliseconds": round(took, 1)})

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
#: Characters of one text, and of one picture as base64.
LONGEST_TEXT, LONGEST_PICTURE = 100_000, 3_000_000
#: Rows of a table. The JSON below it has the others.
LONGEST_TABLE = 200


def result_context(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the template needs: `error`, or blocks, and data as a table and as JSON."""
    error = message.get("error")
    if error is not None:
        return {"error": str(error.get("message")), "data": pretty(error.get("data"))}
    result: dict[str, Any] = message["result"]
    blocks = [*result.get("content", ()), *result.get("contents", ())]
    data = result.get("structuredContent")
    if data is None and blocks:
        data = json_in(blocks[0].get("text"))
    rows = rows_in(data)
    return {
        "is_error": bool(result.get("isError")),
        # Most tools say the same twice, for programs and for models.
        "blocks": [
            block_of(block)
            for block in blocks
            if data is None or json_in(block.get("text")) != data
        ],
        "table": records_table(rows[:LONGEST_TABLE]) if rows else None,
        "more_rows": len(rows[LONGEST_TABLE:]),
        "json": pretty(data),
    }


def rows_in(data: Any) -> list[dict[str, Any]]:
    """Return the rows of a table, or the first list of objects, as objects."""
    members = data if isinstance(data, dict) else {"": data}
    columns, rows = members.get("columns"), members.get("rows")
    if isinstance(columns, list) and is_list_of(list, rows):
        # A column of related records is an object: its name, and the names of their columns.
        names = [next(iter(name), "") if isinstance(name, dict) else name for name in columns]
        return [dict(zip(map(str, names), row, strict=False)) for row in rows or ()]
    return next((member for member in members.values() if is_list_of(dict, member)), [])


def is_list_of(kind: type, value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, kind) for one in value)


def block_of(block: Mapping[str, Any]) -> dict[str, Any]:
    match block.get("type"):
        case "text":
            return {"title": "Text", "text": cut(block["text"])}
        case "image" | "audio" as kind:
            return binary_block(kind.capitalize(), block.get("mimeType"), block["data"])
        case "resource":
            return contents_block(block["resource"])
        case None:
            return contents_block(block)
        case other:
            return {"title": other, "text": pretty(block)}


def contents_block(contents: Mapping[str, Any]) -> dict[str, Any]:
    mime_type = contents.get("mimeType")
    title = f"{contents['uri']} ({mime_type})"
    if "blob" in contents:
        return binary_block(title, mime_type, contents["blob"])
    return {"title": title, "text": cut(contents.get("text", ""))}


def binary_block(title: str, mime_type: Any, data: str) -> dict[str, Any]:
    size = len(data) * 3 // 4 - data.count("=", -2)
    found: dict[str, Any] = {"title": title, "note": f"{size} bytes of {mime_type}"}
    if mime_type in PICTURES and len(data) <= LONGEST_PICTURE:
        found["source"] = f"data:{mime_type};base64,{data}"
    return found


def json_in(text: str | None) -> Any:
    """Return the object or list that a text is the JSON of, or None."""
    try:
        data = decode_json((text or "").encode())
    except ProtocolError:
        return None
    return data if isinstance(data, (dict, list)) else None


def pretty(value: Any) -> str:
    return "" if value is None else cut(json.dumps(value, indent=2, ensure_ascii=False))


def cut(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}\n… and {len(text) - LONGEST_TEXT} more characters."


# Arguments to begin with.

#: Models in which a record is looked for.
MOST_MODELS = 5


def example_arguments(
    context: CallContext, rights: Rights, tool: ToolDefinition
) -> dict[str, Any]:
    """Return the arguments that the schema requires, with a model and a record of this caller."""
    schema = tool.input_schema
    arguments: Any = {}
    try:
        arguments = Examples().make(schema)
        if tool.name in RECORD_TOOLS:
            arguments |= record_arguments(context, rights, tool)
    except Exception:  # schemas and models are code of the site
        logger.exception("There is no example for the tool %s.", tool.name)
    return arguments if isinstance(arguments, dict) else {}


def record_arguments(context: CallContext, rights: Rights, tool: ToolDefinition) -> dict[str, Any]:
    """Return arguments of a generic tool. A call with them changes nothing."""
    names = {*tool.input_schema.get("required", ()), "pk", "pks", "dry_run"}
    values: dict[str, Any] = {"uri": SITE, "dry_run": True}
    exposures = [
        exposure for exposure in rights.exposures() if is_for(rights, tool.name, exposure)
    ]
    if exposures:
        samples = (
            (exposure, sample_rows(rights, OwnRights(rights), exposure))
            for exposure in exposures[:MOST_MODELS]
        )
        exposure, records = next((pair for pair in samples if pair[1]), (exposures[0], [{}]))
        if tool.name == "find_records":
            return example(allowed_paths(rights, exposure))
        values["model"] = exposure.label
        keys = [records[0].get(part.name) for part in exposure.model._meta.pk_fields]
        if None not in keys:
            values["pk"] = keys[0] if len(keys) == 1 else keys
            values["pks"] = [values["pk"]]
        if "values" in names:
            writing = writing_of(context, rights, exposure)
            schemas = writing.get("create_record") or writing.get("update_record") or {}
            values["values"] = Examples().make(schemas.get("values", {"type": "object"}))
    properties = tool.input_schema.get("properties", {})
    return {name: values[name] for name in properties if name in names and name in values}


def is_for(rights: Rights, name: str, exposure: ModelExposure) -> bool:
    """Return whether a generic tool can answer about the model."""
    if isinstance(tool := RECORD_TOOLS[name], WriteTool):
        return may(rights, exposure.model, tool.verb)
    is_open = name != "get_history" or has_pages(rights, exposure)
    return is_open and is_asked_by(name, rights, exposure)


# A call from the page, and its questions, until it has an answer.


class JSONObjectField(CharField):
    """A JSON object as text, read as the body of a call is."""

    widget = Textarea(attrs={"rows": 10, "class": "mcp-json", "spellcheck": "false"})

    def clean(self, value: Any) -> dict[str, Any]:
        text = super().clean(value) or "{}"
        try:
            data = decode_json(text.encode())
        except ProtocolError as error:
            sentence = str(error).replace("The body", "This")
            raise ValidationError(f"{sentence} Nothing was called.") from None
        if not isinstance(data, dict):
            raise ValidationError("This is no JSON object, such as {}. Nothing was called.")
        return data


class ArgumentsForm(Form):
    arguments = JSONObjectField(required=False, label="Arguments as JSON")


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


class AnswersForm(Form):
    """Answers to the questions that a call ended with."""

    questions = CharField(widget=HiddenInput)
    #: Signed by the server, for this caller and this call.
    state = CharField(widget=HiddenInput)
    answers = JSONObjectField(
        label="Your answers as JSON",
        help_text="To agree, write true. To decline, write decline in place of accept.",
    )


def answers_form(result: Mapping[str, Any], answers: Mapping[str, Any]) -> AnswersForm:
    """Return the form for the questions of a result, with answers to begin with."""
    questions, responses = [], {}
    for key, request in result["inputRequests"].items():
        schema = request["params"]["requestedSchema"]
        members = schema["properties"]
        lines = (f"{name}: {json.dumps(members[name], ensure_ascii=False)}" for name in members)
        questions.append("\n".join((request["params"]["message"], "", *lines)))
        content = {
            # Nobody agrees by sending what is there: a yes is to be written.
            name: member.get("default", member["type"] != "boolean" and Examples().make(member))
            for name, member in members.items()
            if name in schema.get("required", ()) or "default" in member
        }
        responses[key] = answers.get(key) or {"action": "accept", "content": content}
    initial = {"questions": "\n\n".join(questions), "answers": pretty(responses)}
    return AnswersForm(initial={**initial, "state": result["requestState"]})


def make_posted_call(
    request: HttpRequest, form: Form, tool: ToolDefinition | None
) -> dict[str, Any]:
    """Call the tool, or read the resource, if all that was written can be read.

    Returns what the template needs: the result and questions, if there are any.
    """
    answering = AnswersForm(request.POST) if "state" in request.POST else None
    if not form.is_valid() or not (answering is None or answering.is_valid()):
        return {"asking": answering}
    method, params = "resources/read", {**form.cleaned_data}
    if tool is not None:
        method, params["name"] = "tools/call", tool.name
    answers = {}
    if answering is not None:
        answers = answering.cleaned_data["answers"]
        params |= {"inputResponses": answers, "requestState": answering.cleaned_data["state"]}
    param_headers = {} if tool is None else tool.param_headers
    message, figures = try_call(request, method, params, param_headers=param_headers)
    context: dict[str, Any] = {"result": figures | result_context(message)}
    result = message.get("result", {})
    if result.get("resultType") == "input_required":
        context["asking"] = answers_form(result, answers)
    return context


def try_it_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Show what there is to try on GET, or an example of one tool. Make the call on POST."""
    name = request.GET.get("tool")

    def look_up(context: CallContext, rights: Rights) -> dict[str, Any]:
        pages = (result.definitions for result in every_page(context))
        tools = [one for page in pages for one in page if isinstance(one, ToolDefinition)]
        # As in a call: there is no such tool, or none for this person.
        tool = next((one for one in tools if one.name == name), None)
        arguments = {}
        if tool is not None and request.method != "POST":
            arguments = example_arguments(context, rights, tool)
        uris = [one.uri for one in list_resources(rights)[:MOST_URIS]]
        return {"tools": tools, "uris": uris, "tool": tool, "arguments": arguments}

    try:
        context = call_as(principal_of_page(request), request, look_up)
    except ToolError as error:
        return TRY_IT.render(model_admin, request, refused=str(error))
    tool: ToolDefinition | None = context["tool"]
    is_call = request.method == "POST" and (name is None or tool is not None)
    data = request.POST if is_call else None
    if tool is None:
        context |= {"form": ResourceForm(data), "unknown": name}
    else:
        form = ArgumentsForm(data, initial={"arguments": pretty(context["arguments"])})
        context |= {"form": form, "schema": pretty(tool.input_schema)}
    if is_call:
        context |= make_posted_call(request, context["form"], tool)
    return TRY_IT.render(model_admin, request, **context)
