"""Faults in transports/calls, transports/streams and transports/stdio."""

from __future__ import annotations

from tests.faults.model import Fault, Room

FAULTS = (
    # Threads
    Fault(
        file="transports/calls/lanes.py",
        old="self._queues.move_to_end(run.caller)",
        new="self._queues.move_to_end(run.caller, last=False)",
    ),
    Fault(
        file="transports/calls/lanes.py",
        old="self._running[run.caller] < max(1, self.size - 1)",
        new="self._running[run.caller] < self.size",
    ),
    Fault(
        file="transports/calls/lanes.py",
        old="self.lost_threads * 2 >=",
        new="self.lost_threads >",
    ),
    Fault(
        file="transports/calls/lanes.py",
        old="if not is_owed and self._is_full_for(caller):",
        new="if self._is_full_for(caller):",
    ),
    # What a call says, asks and leaves behind
    Fault(
        file="transports/calls/output.py",
        old='elif message.params["progress"] > self',
        new='elif message.params["progress"] >= self',
    ),
    Fault(
        file="transports/calls/output.py",
        old="now + 1, MOST_LINES - len(lines)",
        new="now + 1, MOST_LINES",
    ),
    Fault(
        file="transports/calls/running.py",
        old="await sync_to_async(close_connections)()",
        new="await sync_to_async(bool)()",
    ),
    Fault(
        file="transports/calls/running.py",
        old="if ending.cancelled() or ending.exception() is not None:",
        new="if ending.cancelled():",
    ),
    Fault(
        file="transports/calls/running.py",
        old="if self._log is None or self._is_answered:",
        new="if self._log is None or self.call.is_over:",
    ),
    Fault(
        file="transports/calls/client_requests.py",
        old="for request_id in self._open.values() if self._are_asked else ():",
        new="for request_id in self._open.values():",
    ),
    Fault(
        file="transports/calls/client_requests.py",
        old="return came if came or store.session(self.session.key) is not None else None",
        new="return came",
    ),
    Fault(
        file="transports/calls/log.py",
        old="rights = rights_digest(principal), prompt_groups(principal.server)",
        new="rights = prompt_groups(principal.server)",
    ),
    # Sessions, and the answers of refused calls
    Fault(
        file="transports/sessions.py",
        old="session is None or session.principal != principal.key or",
        new="session is None or",
    ),
    Fault(
        file="transports/serving.py",
        old="return self.throttle(principal) or self.exchange.refusal",
        new="return self.exchange.refusal",
    ),
    Fault(
        file="transports/exchanges.py",
        old='error = ProtocolError(wire["code"], wire["message"], wire.get("data"))',
        new="error = ProtocolError(INTERNAL_ERROR, wire['message'], wire.get('data'))",
    ),
    # Streams
    Fault(
        file="transports/streams/hub.py",
        old=">= config.max_streams_per_principal",
        new="> config.max_streams_per_principal",
    ),
    Fault(
        file="transports/streams/hub.py",
        old="if at >= since and change.touches(topic):",
        new="if change.touches(topic):",
    ),
    Fault(
        file="transports/streams/layer.py",
        old="{EVERYTHING, *changes} if self._has_lost else changes",
        new="changes",
    ),
    Fault(
        file="transports/streams/layer.py",
        old='return change.topic in LISTS or change.topic.startswith(f"{CLOSE} ")',
        new="return change.topic in LISTS",
    ),
    Fault(
        file="transports/streams/notifier.py",
        old="(verdict is Verdict.VISIBLE and not news.is_hidden)",
        new="verdict is Verdict.VISIBLE",
    ),
    Fault(
        file="transports/streams/notifier.py",
        old="if principal.key != stream_group.principal.key:",
        new="if not principal.key:",
    ),
    Fault(
        file="transports/streams/event_stream.py",
        old="self.hub.take_over(topic, self.end)",
        new="self.hub.claim(topic, self.end)",
    ),
    Fault(
        file="transports/streams/event_stream.py",
        old="await try_store(lambda store: store.see(self.spec.session))",
        new="pass",
    ),
    # A pipe
    Fault(
        file="transports/stdio/conversation.py",
        old="end_session(key_of(before.session_id))",
        new="key_of(before.session_id)",
    ),
    Fault(
        file="transports/stdio/conversation.py",
        old="if exchange.calls and reply.parts:",
        new="if reply.parts:",
    ),
    Fault(
        file="transports/stdio/lines.py",
        old='return b"".join([*parts, end]) if size <= self.limit else None',
        new='return b"".join([*parts, end])',
    ),
    Fault(
        file="transports/shutdown.py",
        old="if callable(otherwise) and not isinstance(otherwise, Shutdown):",
        new="if callable(otherwise):",
    ),
)
CALLS = Room(
    tests=(
        "tests/transports/calls",
        "tests/transports/streams",
        "tests/transports/stdio",
        "tests/transports/test_session_ids.py",
        "tests/transports/test_serving.py",
        "tests/transports/test_shutdown.py",
        "tests/hostile/test_resumed_streams.py",
        "tests/hostile/test_moments.py",
    ),
    faults=FAULTS,
)
