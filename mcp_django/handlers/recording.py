"""What is kept of each call: a record, a line in the log, a signal."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from django.apps import apps
from django.dispatch import Signal
from django.utils import timezone

from mcp_django import signals
from mcp_django.audit.entries import keys_line, line, redacted
from mcp_django.audit.reasons import reason_of
from mcp_django.audit.records import records
from mcp_django.auth.throttles import GUESSABLE, failed_calls, is_dry_run, refusals
from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import Limited, NotDone, NotFound, ToolError
from mcp_django.exposure.primitives import BUILT_IN, WRITES
from mcp_django.exposure.registry import registry
from mcp_django.handlers.telemetry import CallSpan
from mcp_django.models import CallRecord
from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.results import CompletionResult, ReadResult, ToolResult
from mcp_django.tracing import is_traced

logger = logging.getLogger("mcp_django")
calls_logger = logging.getLogger("mcp_django.calls")

Outcome: TypeAlias = CallRecord.Outcome

#: Characters of the columns of a record.
LONGEST: dict[str, Any] = {f.name: f.max_length for f in CallRecord._meta.concrete_fields}
#: A number, or a UUID.
KEY = re.compile(r"[0-9a-fA-F-]{1,40}")
#: Members of params that are no arguments.
UNTOLD = frozenset({"_meta", "requestState"})
# Tuples: to look into a set asks an enum for its hash, which takes longer.
DENIALS = (Outcome.DENIED, Outcome.LIMITED)
#: Ends of calls whose arguments were of no use.
USELESS = (Outcome.FAILED, Outcome.DENIED, Outcome.INVALID)
KINDS = {
    "tools/call": CallRecord.Kind.TOOL.value,
    "resources/read": CallRecord.Kind.RESOURCE.value,
    "prompts/get": CallRecord.Kind.PROMPT.value,
}
OTHER = CallRecord.Kind.OTHER.value
#: The signal of a method, and after what it is sent.
SIGNALS: dict[str, tuple[Signal | None, tuple[Outcome, ...]]] = {
    "tools/call": (
        signals.tool_called,
        # Not CANCELLED: event loops hear of that, and receivers may ask the database.
        (Outcome.DONE, Outcome.REFUSED, Outcome.FAILED, Outcome.CRASHED),
    ),
    "resources/read": (signals.resource_read, (Outcome.DONE,)),
    "prompts/get": (signals.prompt_rendered, (Outcome.DONE,)),
}


class Recording:
    """One call, from its start to its one record."""

    __slots__ = ("context", "ends", "request", "span", "started", "written")

    def __init__(self, context: CallContext, request: Request) -> None:
        self.context = context
        self.request = request
        self.started = time.perf_counter()
        #: When a client leaves, two threads may report the end. Only one of them can take this.
        self.ends = [True]
        #: The label of the model and the keys of what was written, or was to be.
        self.written: tuple[str, Sequence[Any]] = to_be_written(request)
        self.span = CallSpan(request, context) if is_traced() else None

    def answered(self, result: object, *, size: int, is_asked: bool) -> None:
        if isinstance(result, ToolResult) and result.model:
            self.written = result.model, result.keys
        if is_asked:
            self.end(Outcome.ASKED, size=size)
        elif isinstance(result, ToolResult) and result.is_error:
            outcome = self._refused_as(result.refusal, otherwise=Outcome.FAILED)
            reason = reason_of(result.refusal, self.request.params)
            self.end(outcome, size=size, records=result.records, reason=reason)
        else:
            records = result.records if isinstance(result, ToolResult | ReadResult) else None
            if isinstance(result, CompletionResult):
                records = len(result.values)
            self.end(Outcome.DONE, size=size, records=records)

    def refused(self, error: ProtocolError, *, size: int) -> None:
        """The error was raised from the ToolError that it tells of, if there was one."""
        cause = error.__cause__
        reason = reason_of(cause if isinstance(cause, ToolError) else error, self.request.params)
        outcome = self._refused_as(cause, otherwise=Outcome.INVALID)
        self.end(outcome, size=size, reason=reason, code=error.code)

    def _refused_as(self, refusal: BaseException | None, *, otherwise: Outcome) -> Outcome:
        match refusal:
            case NotFound():
                return Outcome.DENIED
            case Limited():
                return Outcome.LIMITED
            case NotDone():
                return Outcome.REFUSED
            case ToolError():
                otherwise = Outcome.FAILED
        # What fails when nobody waits any more was most likely stopped.
        return Outcome.CANCELLED if self.context.cancelled.is_set() else otherwise

    def end(
        self,
        outcome: Outcome,
        *,
        size: int = 0,
        records: int | None = None,
        correlation_id: str = "",
        reason: str = "",
        code: int | None = None,
    ) -> None:
        """Keep how it ended. Only the first end counts. Never raises."""
        try:
            self.ends.pop()
        except IndexError:
            return
        try:
            if self.span is not None:
                self.span.end(outcome, code)
            if outcome in USELESS and self.request.method in GUESSABLE:
                failed_calls.add(f"{self.request.method} {self.context.principal.key}")
            method = METHODS.get(self.request.method)
            if method is None or method.is_recorded or outcome is not Outcome.DONE:
                self._keep(outcome, size, records, correlation_id, reason)
        except Exception:
            logger.exception("A call could not be recorded.")

    def _keep(
        self, outcome: Outcome, size: int, count: int | None, correlation_id: str, reason: str
    ) -> None:
        context, request, config = self.context, self.request, get_config()
        signal, outcomes = SIGNALS.get(request.method, (None, ()))
        if outcome in DENIALS:
            signal, outcomes = signals.call_denied, DENIALS
        # Usually there are no receivers, and the list says so.
        if signal is not None and (
            outcome not in outcomes or not signal.receivers or not signal.has_listeners(CallRecord)
        ):
            signal = None
        is_logged = calls_logger.isEnabledFor(logging.INFO)
        if not (config.audit or is_logged or signal is not None):
            return
        principal, method = context.principal, request.method
        arguments = None
        if config.audit_arguments:
            arguments = redacted({k: v for k, v in request.params.items() if k not in UNTOLD})
        label, keys = self.written
        if not label and context.logged:
            # What a function of the site wrote into the log of the admin: of the first model.
            label, _ = context.logged[0]
            keys = [*dict.fromkeys(key for other, key in context.logged if other == label)]
        columns = {
            "at": timezone.now(),
            "server": principal.server,
            "kind": KINDS.get(method, OTHER),
            "principal": line(principal.key, LONGEST["principal"]),
            "user_id": principal.user.pk,
            "client": client_of(context),
            "method": line(method, LONGEST["method"]),
            "target": target_of(request),
            "outcome": outcome.value,
            "milliseconds": round((time.perf_counter() - self.started) * 1000),
            "rows": count,
            "bytes": size,
            "correlation_id": correlation_id,
            "arguments": arguments,
            "reason": reason,
            "model": line(label, LONGEST["model"]),
            "keys": keys_line(keys),
        }
        if config.audit:
            # What changes something, and what was not allowed, is kept before anybody hears of it.
            records.put(columns, wait=context.may_write or outcome in DENIALS)
        if is_logged:
            # For programs, `extra` has the same. Arguments only where they are kept.
            extra = {f"mcp_{name}": value for name, value in columns.items()}
            if arguments is None:
                del extra["mcp_arguments"]
            names = ("method", "target", "outcome", "principal", "milliseconds")
            facts = (columns[name] for name in names)
            calls_logger.info("%s %s: %s for %s in %d ms", *facts, extra=extra)
        if signal is not None:
            signal.send_robust(CallRecord, record=CallRecord(**columns), context=context)


def record_limited(context: CallContext, request: Request) -> None:
    """A call that was refused before it began. The first of a minute tells of the others."""
    if refusals.take(context.principal.key) is None:
        reason = reason_of(Limited(), request.params)
        Recording(context, request).end(Outcome.LIMITED, reason=reason)


def client_of(context: CallContext) -> str:
    """The client as it calls itself, or else as its credential does. Cut: it is remembered."""
    name, version = context.client.get("name"), context.client.get("version")
    if not isinstance(name, str) or not name:
        name = context.principal.client
    elif isinstance(version, str):
        # A long name leaves room for the version.
        name = f"{line(name, 80)} {version}"
    return line(name, LONGEST["client"])


def target_of(request: Request) -> str:
    """The tool with the model it was asked about, the prompt, or the URI.

    Without the query of a URI: what somebody looked for is an argument.
    """
    params = request.params
    match request.method:
        case "tools/call":
            return tool_target(params.get("name"), params.get("arguments"))
        case "resources/read":
            return without_query(params.get("uri"))
        case "prompts/get":
            return text(params.get("name"))
        case "completion/complete":
            ref = params.get("ref")
            named = ref if isinstance(ref, dict) else {}
            return text(named.get("name")) or without_query(named.get("uri"))
    return ""


def to_be_written(request: Request) -> tuple[str, Sequence[Any]]:
    """The label of the model, and the keys, that the arguments of a tool that writes name. Only
    numbers and UUIDs: any other text may be something else, and arguments are not kept.
    """
    name, arguments = request.params.get("name"), request.params.get("arguments")
    is_write = request.method == "tools/call" and isinstance(name, str) and name in WRITES
    if not is_write or not isinstance(arguments, dict):
        return "", ()
    keys = arguments.get("pk", arguments.get("pks", ()))
    listed = keys if isinstance(keys, list) else [keys]
    return label_in(arguments), [key for key in listed if is_number_or_uuid(key)]


def is_number_or_uuid(key: Any) -> bool:
    if isinstance(key, str):
        return KEY.fullmatch(key) is not None
    return type(key) is int and abs(key) < 2**63


def label_in(arguments: Mapping[str, Any]) -> str:
    """The label of a model among arguments. Any other text is an argument as all others are."""
    label = arguments.get("model")
    app, _, model = label.lower().partition(".") if isinstance(label, str) else ("", "", "")
    return f"{app}.{model}" if model in apps.all_models.get(app, ()) else ""


def tool_target(name: Any, arguments: Any) -> str:
    if not (isinstance(name, str) and isinstance(arguments, dict)):
        return text(name)
    if name in BUILT_IN and (label := label_in(arguments)):
        name = f"{name} {label}"
    if name == "call_endpoint" and str(arguments.get("endpoint")) in registry.tools:
        name = f"{name} {arguments['endpoint']}"
    # Nothing else in a record says that it was a dry run.
    return text(f"{name} (dry run)" if is_dry_run(name, arguments) else name)


def without_query(uri: Any) -> str:
    path, mark, _ = text(uri).partition("?")
    return text(f"{path}?…" if mark else path)


def text(value: Any) -> str:
    return line(value, LONGEST["target"]) if isinstance(value, str) else ""
