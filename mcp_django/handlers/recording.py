"""What is kept of each call: a record, a line in the log, a signal."""

from __future__ import annotations

import logging
import time
from functools import lru_cache
from typing import Any, TypeAlias

from django.apps import apps
from django.dispatch import Signal
from django.utils import timezone

from mcp_django import signals
from mcp_django.audit.entries import (
    LONGEST_CLIENT,
    LONGEST_METHOD,
    LONGEST_TARGET,
    Entry,
    line,
    principal_line,
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
KINDS = {
    "tools/call": CallRecord.Kind.TOOL.value,
    "resources/read": CallRecord.Kind.RESOURCE.value,
    "prompts/get": CallRecord.Kind.PROMPT.value,
}
OTHER = CallRecord.Kind.OTHER.value
DENIALS = frozenset({Outcome.DENIED, Outcome.LIMITED})
#: The signal of a method, and after what it is sent.
SIGNALS: dict[str, tuple[Signal, frozenset[Outcome]]] = {
    "tools/call": (
        signals.tool_called,
        # Not CANCELLED: event loops hear of that, and receivers may ask the database.
        frozenset({Outcome.DONE, Outcome.FAILED, Outcome.CRASHED}),
    ),
    "resources/read": (signals.resource_read, frozenset({Outcome.DONE})),
    "prompts/get": (signals.prompt_rendered, frozenset({Outcome.DONE})),
}
#: What clients call themselves by, and how much of it is kept.
LONGEST_NAME = 80


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
                return otherwise
            case NotFound():
                return Outcome.DENIED
            case Limited():
                return Outcome.LIMITED
            case Unconfirmed():
                return Outcome.ASKED
        return Outcome.FAILED

    def end(self, outcome: Outcome, *, size: int = 0, correlation_id: str = "") -> None:
        """Keep how it ended. Only the first end counts. Never raises."""
        try:
            self.ends.pop()
        except IndexError:
            return
        try:
            if outcome in (
                Outcome.FAILED,
                Outcome.DENIED,
                Outcome.INVALID,
            ):
                count_failure(self.context, self.request)
            method = METHODS.get(self.request.method)
            # Who says hello learns nothing about anybody, and some clients say it all the time.
            if method is None or not method.is_constant or outcome is not Outcome.DONE:
                self._keep(outcome, size, correlation_id)
        except Exception:
            logger.exception("A call could not be recorded.")

    def _keep(self, outcome: Outcome, size: int, correlation_id: str) -> None:
        signal, is_kept = self._signal(outcome), get_config().audit
        is_logged = calls_logger.isEnabledFor(logging.INFO)
        if not (is_kept or is_logged or signal is not None):
            return
        entry = self._entry(outcome, size, correlation_id)
        if is_kept:
            # What changes something, and what was not allowed, is kept before anybody hears of it.
            records.put(entry, wait=self.context.facts.may_write or outcome in DENIALS)
        if is_logged:
            log(entry)
        if signal is not None:
            signal.send_robust(CallRecord, record=entry.record(), context=self.context)

    def _signal(self, outcome: Outcome) -> Signal | None:
        """What is sent of such an end, if anybody listens."""
        signal, outcomes = SIGNALS.get(self.request.method, (None, frozenset()))
        if outcome in DENIALS:
            signal = signals.call_denied
        elif outcome not in outcomes:
            return None
        return signal if signal is not None and signal.has_listeners(CallRecord) else None

    def _entry(self, outcome: Outcome, size: int, correlation_id: str) -> Entry:
        context, request = self.context, self.request
        principal = context.principal
        arguments = None
        if get_config().audit_arguments:
            arguments = redacted({k: v for k, v in request.params.items() if k not in UNTOLD})
        return Entry(
            principal.server,
            timezone.now(),
            KINDS.get(request.method, OTHER),
            principal_line(principal.key),
            principal.user.pk,
            client_line(context),
            line(request.method, LONGEST_METHOD),
            line(target_of(request), LONGEST_TARGET),
            outcome.value,
            round((time.perf_counter() - self.started) * 1000),
            context.facts.rows,
            size,
            correlation_id,
            arguments,
        )


def record_limited(context: CallContext, request: Request) -> None:
    """A call that was refused before it began. The first of a minute tells of the others."""
    if throttles.told.take(context.principal.key) is None:
        Recording(context, request).end(Outcome.LIMITED)


def client_line(context: CallContext) -> str:
    """As the client calls itself, or else as its credential does."""
    name, version = context.client.get("name"), context.client.get("version")
    if not isinstance(name, str) or not name:
        return line(context.principal.client, LONGEST_CLIENT)
    # Cut before it is remembered.
    shown = version[:LONGEST_CLIENT] if isinstance(version, str) else None
    return name_line(name[: LONGEST_CLIENT + 1], shown)


@lru_cache(maxsize=256)
def name_line(name: str, version: str | None) -> str:
    if version is None:
        return line(name, LONGEST_CLIENT)
    return line(f"{line(name, LONGEST_NAME)} {version}", LONGEST_CLIENT)


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
    if name in BUILT_IN and isinstance(label, str):
        app, _, model = label.lower().partition(".")
        # Any other text is an argument as all the others are.
        if model in apps.all_models.get(app, ()):
            return f"{name} {app}.{model}"
    return text(name)


def without_query(uri: Any) -> str:
    path, mark, _ = text(uri).partition("?")
    return f"{path}?…" if mark else path


def text(value: Any) -> str:
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
