"""Faults in transports: calls, streams and stdio."""

from __future__ import annotations

from tests.faults.model import Room

CALLS = Room(
    tests=(
        "tests/transports/test_back_pressure.py",
        "tests/transports/test_call.py",
        "tests/transports/test_call_messages.py",
        "tests/transports/test_cancelled_calls.py",
        "tests/transports/test_changes.py",
        "tests/transports/test_client_requests.py",
        "tests/transports/test_concurrent_calls.py",
        "tests/transports/test_layer.py",
        "tests/transports/test_listening.py",
        "tests/transports/test_resume.py",
        "tests/transports/test_serving.py",
        "tests/transports/test_session_ids.py",
        "tests/transports/test_shutdown.py",
        "tests/transports/test_stdio.py",
        "tests/transports/test_stdio_lines.py",
        "tests/transports/test_threads.py",
        "tests/hostile/test_resumed_streams.py",
        "tests/hostile/test_moments.py",
    ),
    lines={
        # Threads
        "transports/threads.py": [
            (
                "self._queues.move_to_end(caller)",
                "self._queues.move_to_end(caller, last=False)",
            ),
            (
                "own >= max(1, self.size // 2)",
                "own >= self.size",
            ),
            ("(own and self._is_last())", "False"),
            ("return slow < max(1, self.size - 1)", "return slow < self.size"),
            ("key=lambda caller: self._is_behind(caller, now)", "key=lambda caller: 0"),
            ("(caller, now) or caller.startswith(ADDRESS)", "(caller, now)"),
            ("                self.lane.start_waiting()\n", ""),
            ("self.lost_threads * 2 > ", "self.lost_threads > "),
            ("if not is_owed and self._is_full_for(caller):", "if self._is_full_for(caller):"),
        ],
        # What a call says, asks and leaves behind
        "transports/output.py": [
            ('elif message.params["progress"] > self', 'elif message.params["progress"] >= self'),
            ("            self._room -= 1\n            # The", "            # The"),
        ],
        "transports/call.py": [
            ("await sync_to_async(close_connections)()", "await sync_to_async(bool)()"),
            ("if ending.cancelled() or ending.exception() is not None:", "if ending.cancelled():"),
            (
                "if self._log is None or self._is_answered:",
                "if self._log is None or self.call.is_over:",
            ),
        ],
        "transports/client_requests.py": [
            (
                "for request_id in self._open.values() if self._are_asked else ():",
                "for request_id in self._open.values():",
            ),
            (
                "return came if came or store.session(self.session.key) is not None else None",
                "return came",
            ),
        ],
        "transports/call_log.py": [
            (
                "rights = rights_digest(principal), prompt_groups(principal.server)",
                "rights = prompt_groups(principal.server)",
            )
        ],
        # Sessions, and the answers of refused calls
        "transports/sessions.py": [
            ("session is None or session.principal != principal.key or", "session is None or")
        ],
        "transports/serving.py": [
            (
                "return self.throttle(principal) or self.exchange.refusal",
                "return self.exchange.refusal",
            )
        ],
        # Streams
        "transports/hub.py": [
            (">= config.max_streams_per_principal", "> config.max_streams_per_principal"),
            ("if at < since:", "if False:"),
        ],
        "transports/layer.py": [
            ("{EVERYTHING, *changes} if self._has_lost else changes", "changes"),
            (
                'return change.topic in LISTS or change.topic.startswith(f"{CLOSE} ")',
                "return change.topic in LISTS",
            ),
        ],
        "transports/notifier.py": [
            ("(verdict is Verdict.VISIBLE and not is_hidden)", "verdict is Verdict.VISIBLE"),
            ("if principal.key != stream_group.principal.key:", "if not principal.key:"),
        ],
        "transports/event_stream.py": [
            ("self.hub.take_over(topic, self.end)", "self.hub.claim(topic, self.end)"),
            (
                'if session is None or session.standalone not in ("", self.hub.key):',
                "if session is None:",
            ),
            ("await try_store(lambda store: store.see(self.spec.session))", "pass"),
        ],
        # A pipe
        "transports/stdio.py": [
            ("end_session(key_of(before.session_id))", "key_of(before.session_id)"),
            ("if exchange.calls and reply.parts:", "if reply.parts:"),
        ],
        "transports/stdio_lines.py": [
            (
                'yield line.removesuffix(b"\\n") if is_whole else None',
                'yield line.removesuffix(b"\\n")',
            )
        ],
        "transports/shutdown.py": [
            (
                "if callable(otherwise) and not isinstance(otherwise, Shutdown):",
                "if callable(otherwise):",
            )
        ],
    },
)
