"""What is kept of each call: a record, a line in the log, a signal."""

from __future__ import annotations

import logging
import time
from typing import Any, TypeAlias

from django.apps import apps
from django.dispatch import Signal

from mcp_django import signals
from mcp_django.audit.ends import End
from mcp_django.audit.entries import (
    LONGEST_CLIENT,
    LONGEST_METHOD,
    LONGEST_TARGET,
    Entry,
    line,
    redacted,
)
from mcp_django.audit.records import records
from mcp_django.auth import throttles
from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import Limited, NotFound, Unconfirmed
from mcp_django.exposure.tools import BUILT_IN
from mcp_django.handlers.limits import count_failure
from mcp_django.models import CallRecord
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.results import InputRequired, ToolResult

logger = logging.getLogger("mcp_django")
calls_logger = logging.getLogger("mcp_django.calls")

Outcome: TypeAlias = CallRecord.Outcome

#: Members of params that say nothing about what was asked.
UNTOLD = frozenset({"_meta", "requestState"})
# Tuples: to look into a set asks an enum for its hash, which takes longer.
DENIALS = (Outcome.DENIED, Outcome.LIMITED)
#: Ends of calls whose arguments were of no use.
USELESS = (Outcome.FAILED, Outcome.DENIED, Outcome.INVALID)
#: The signal of a method, and after what it is sent.
SIGNALS: dict[str, tuple[Signal, tuple[Outcome, ...]]] = {
    "tools/call": (
        signals.tool_called,
        # Not CANCELLED: event loops hear of that, and receivers may ask the database.
        (Outcome.DONE, Outcome.FAILED, Outcome.CRASHED),
    ),
    "resources/read": (signals.resource_read, (Outcome.DONE,)),
    "prompts/get": (signals.prompt_rendered, (Outcome.DONE,)),
}
#: Of other methods nobody hears.
UNHEARD: tuple[Signal, tuple[Outcome, ...]] = (Signal(), ())


class Recording:
    """One call, from its start to its one record."""

    __slots__ = ("context", "ends", "request", "started")

    def __init__(self, context: CallContext, request: Request) -> None:
        self.context = context
        self.request = request
        self.started = time.perf_counter()
        #: Of a call whose client leaves, two threads may tell the end. Only one can take this.
        self.ends = [True]

    def answered(self, result: object, *, size: int) -> None:
        if isinstance(result, InputRequired):
            self.end(Outcome.ASKED, size=size)
        elif isinstance(result, ToolResult) and result.is_error:
            self.end(self._refused_as(Outcome.FAILED), size=size)
        else:
            self.end(Outcome.DONE, size=size)

    def refused(self, *, size: int) -> None:
        self.end(self._refused_as(Outcome.INVALID), size=size)

    def _refused_as(self, otherwise: Outcome) -> Outcome:
        match self.context.facts.refusal:
            case None:
                pass
            case NotFound():
                return Outcome.DENIED
            case Limited():
                return Outcome.LIMITED
            case Unconfirmed():
                return Outcome.ASKED
            case _:
                otherwise = Outcome.FAILED
        # What fails when nobody waits any more was most likely stopped.
        return Outcome.CANCELLED if self.context.cancelled.is_set() else otherwise

    def end(self, outcome: Outcome, *, size: int = 0, correlation_id: str = "") -> None:
        """Keep how it ended. Only the first end counts. Never raises."""
        try:
            self.ends.pop()
        except IndexError:
            return
        try:
            if outcome in USELESS:
                count_failure(self.context, self.request)
            method = METHODS.get(self.request.method)
            if method is None or method.is_recorded or outcome is not Outcome.DONE:
                self._keep(outcome, size, correlation_id)
        except Exception:
            logger.exception("A call could not be recorded.")

    def _keep(self, outcome: Outcome, size: int, correlation_id: str) -> None:
        signal, config = self._signal(outcome), get_config()
        is_logged = calls_logger.isEnabledFor(logging.INFO)
        if not (config.audit or is_logged or signal is not None):
            return
        end = self._end(outcome, size, correlation_id)
        if config.audit:
            # What changes something, and what was not allowed, is kept before anybody hears of it.
            records.put(end, wait=self.context.facts.may_write or outcome in DENIALS)
        if is_logged or signal is not None:
            self._tell(end.entry(), signal, is_logged=is_logged)

    def _tell(self, entry: Entry, signal: Signal | None, *, is_logged: bool) -> None:
        if is_logged:
            log(entry)
        if signal is not None:
            signal.send_robust(CallRecord, record=entry.record(), context=self.context)

    def _signal(self, outcome: Outcome) -> Signal | None:
        """What is sent of such an end, if anybody listens."""
        if outcome in DENIALS:
            signal = signals.call_denied
        else:
            signal, outcomes = SIGNALS.get(self.request.method, UNHEARD)
            if outcome not in outcomes:
                return None
        # Nobody at all is the usual case, and told by a list.
        return signal if signal.receivers and signal.has_listeners(CallRecord) else None

    def _end(self, outcome: Outcome, size: int, correlation_id: str) -> End:
        context, request = self.context, self.request
        principal = context.principal
        arguments = None
        if get_config().audit_arguments:
            arguments = redacted({k: v for k, v in request.params.items() if k not in UNTOLD})
        method = request.method
        name, version = called(context)
        return End(
            principal.server,
            time.time(),
            principal.key,
            principal.user.pk,
            name,
            version,
            method if method in METHODS else line(method, LONGEST_METHOD),
            target_of(request),
            outcome,
            time.perf_counter() - self.started,
            context.facts.rows,
            size,
            correlation_id,
            arguments,
        )


def record_limited(context: CallContext, request: Request) -> None:
    """A call that was refused before it began. The first of a minute tells of the others."""
    if throttles.told.take(context.principal.key) is None:
        Recording(context, request).end(Outcome.LIMITED)


def called(context: CallContext) -> tuple[str, str | None]:
    """The client as it calls itself, or else as its credential does. Cut: it is remembered."""
    name, version = context.client.get("name"), context.client.get("version")
    if not isinstance(name, str) or not name:
        return context.principal.client[: LONGEST_CLIENT + 1], None
    shown = version[:LONGEST_CLIENT] if isinstance(version, str) else None
    return name[: LONGEST_CLIENT + 1], shown


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


def tool_target(name: Any, arguments: Any) -> str:
    label = arguments.get("model") if isinstance(arguments, dict) else None
    if isinstance(label, str) and isinstance(name, str) and name in BUILT_IN:
        app, _, model = label.lower().partition(".")
        # Any other text is an argument as all the others are.
        if model in apps.all_models.get(app, ()):
            return f"{name} {app}.{model}"
    return text(name)


def without_query(uri: Any) -> str:
    path, mark, _ = cut(uri).partition("?")
    return line(f"{path}?…" if mark else path, LONGEST_TARGET)


def text(value: Any) -> str:
    return line(cut(value), LONGEST_TARGET)


def cut(value: Any) -> str:
    # A megabyte of it is cut before anybody looks at it.
    return value[: LONGEST_TARGET + 1] if isinstance(value, str) else ""


def log(entry: Entry) -> None:
    """One line, whose `extra` has the same for programs. Arguments only where they are kept."""
    told = {f"mcp_{name}": value for name, value in entry._asdict().items()}
    if entry.arguments is None:
        del told["mcp_arguments"]
    calls_logger.info(
        "%s %s: %s for %s in %d ms",
        entry.method,
        entry.target,
        entry.outcome,
        entry.principal,
        entry.milliseconds,
        extra=told,
    )
