"""One call of a view of Django REST framework, in process: what a client of the API would get.

The view's own `dispatch` decides everything: permissions, throttles, parsers, filters, pages and
errors. Only its authentication classes are not asked, since the caller is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.urls import ResolverMatch

from mcp_django.context import CallContext, running
from mcp_django.exceptions import Limited, NotFound, ToolError, ValuesRefused
from mcp_django.exposure.functions.drf import MOST_FAULTS, sentences
from mcp_django.exposure.functions.results import DONE, refusals_in_words, structured
from mcp_django.exposure.query.tables import answer_budget
from mcp_django.exposure.request_attributes import EmptySession
from mcp_django.protocol.content import TextContent
from mcp_django.protocol.results import ToolResult

#: What the request of a call says of the connection, and no header that was about MCP.
CONNECTION = (
    "HTTP_HOST",
    "HTTP_USER_AGENT",
    "HTTP_ACCEPT_LANGUAGE",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PORT",
    "REMOTE_ADDR",
    "SERVER_NAME",
    "SERVER_PORT",
    "SCRIPT_NAME",
)
#: Attributes of a request that are about its own headers and its own view.
NOT_COPIED = frozenset({"headers", "accepted_types", "scope", "resolver_match", "session"})


class EndpointRequest(HttpRequest):
    """A request as a client of the API sends it, with what middleware put on that of the call."""

    #: Django's own switch.
    _dont_enforce_csrf_checks = True

    def __init__(
        self,
        outer: HttpRequest,
        *,
        method: str,
        path: str = "/",
        query: Mapping[str, Any] | None = None,
        values: Any = None,
    ) -> None:
        super().__init__()
        own = {*vars(self), *NOT_COPIED}
        for name, value in vars(outer).items():
            if name not in own and not name.startswith("_"):
                setattr(self, name, value)
        self._scheme = outer.scheme or "http"
        text = urlencode({key: plain(value) for key, value in (query or {}).items()}, doseq=True)
        body = b"" if values is None else msgspec.json.encode(values)
        self.method, self.path, self.path_info = method.upper(), path, path
        self.META = {
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            **{name: outer.META[name] for name in CONNECTION if name in outer.META},
            "REQUEST_METHOD": self.method,
            "PATH_INFO": path,
            "QUERY_STRING": text,
            "HTTP_ACCEPT": "application/json",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
        }
        self.GET = QueryDict(text)
        self.content_type = "application/json"
        self._body, self._stream, self._read_started = body, BytesIO(body), False
        self.session = EmptySession()
        # REST framework's own switch: no authentication class is asked.
        self._force_auth_user = self.user

    def _get_scheme(self) -> str:
        return self._scheme


def plain(value: Any) -> Any:
    """Return a value as clients write it into a query."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return [plain(item) for item in value] if isinstance(value, list) else value


def call_view(
    context: CallContext, request: EndpointRequest, match: ResolverMatch, *, refused: str = ""
) -> HttpResponseBase:
    """Run a view as Django does for a request, and return its response, rendered.

    Raises ToolError for what the view refuses; `refused` is the argument that its errors are
    about. Other exceptions of the view pass.
    """
    request.resolver_match = match
    apart = getattr(match.func, "_non_atomic_requests", ())
    with refusals_in_words(), running(context), ExitStack() as stack:
        for alias in connections:
            if connections.settings[alias]["ATOMIC_REQUESTS"] and alias not in apart:
                stack.enter_context(transaction.atomic(using=alias))
        response: Any = match.func(request, *match.args, **match.kwargs)
        if hasattr(response, "render"):
            response = response.render()
    if response.status_code >= 400:
        raise refusal_of(response, argument=refused)
    if getattr(response, "streaming", False):
        raise ToolError("This endpoint answers with a file or a stream, which no tool can show.")
    rendered: HttpResponseBase = response
    return rendered


def refusal_of(response: Any, *, argument: str) -> Exception:
    """Return the error that says what the view said."""
    status, data = response.status_code, getattr(response, "data", None)
    if status >= 500:
        return RuntimeError(f"A view answered with status {status}.")
    detail = data.get("detail") if isinstance(data, Mapping) else None
    said = detail or " ".join(islice(sentences(data or [], *argument.split()), MOST_FAULTS))
    said = str(said) or f"The view refused this with status {status}."
    if status == 429:
        wait = response.get("Retry-After")
        return Limited(f"{said} Try again in {wait} seconds." if wait else said)
    if status == 404:
        return NotFound(said)
    return ValuesRefused(said) if status == 400 else ToolError(said)


# What a model reads of a response.


def result_of_response(response: Any, context: CallContext) -> ToolResult:
    """Return the answer of a tool: JSON as data, a list within the budget of an answer."""
    if 300 <= response.status_code < 400:
        return ToolResult(content=[TextContent(f"It is at {response.get('Location')}")])
    content: bytes = response.content
    if not content:
        return ToolResult(content=[TextContent(DONE)])
    budget = answer_budget(context.client)
    if not response.get("Content-Type", "").partition(";")[0].endswith("json"):
        text = content.decode(response.charset or "utf-8", "replace")
        return ToolResult(content=[TextContent(text[:budget])])
    data = msgspec.json.decode(content)
    if isinstance(data, list):
        data = {"results": data}
    elif not isinstance(data, dict):
        data = {"result": data}
    records = None
    if isinstance(data.get("results"), list):
        data, records = listed(data, budget=budget), len(data["results"])
    encoded = msgspec.json.encode(data)
    if len(encoded) > budget:
        raise ToolError("The answer is too long to be shown. Ask for less.")
    return replace(structured(encoded), records=records)


def listed(page: dict[str, Any], *, budget: int) -> dict[str, Any]:
    """Return a page of a list with as many of its objects as fit, and how to ask for the next.

    In place of the addresses of other pages stand the arguments that lead there.
    """
    answer = {name: value for name, value in page.items() if name not in ("next", "previous")}
    if isinstance(page.get("next"), str):
        query = QueryDict(urlsplit(page["next"]).query).lists()
        answer["next"] = {name: texts if len(texts) > 1 else texts[0] for name, texts in query}
    sizes = [len(msgspec.json.encode(row)) + 1 for row in page["results"]]
    left, count = budget - 500, 0
    while count < len(sizes) and (left := left - sizes[count]) >= 0:
        count += 1
    if count < len(sizes):
        answer["results"] = page["results"][:count]
        answer["cut"] = (
            f"The first {count} of {len(sizes)} objects. The others are too long for one answer: "
            "filter, or ask for a smaller page."
        )
        answer.pop("next", None)
    return answer
