"""Faults in transports: HTTP, stores and testing."""

from __future__ import annotations

from tests.faults.model import Room

HTTP = Room(
    tests=(
        "tests/transports/test_session_ids.py",
        "tests/testing",
        "tests/transports/test_bodies.py",
        "tests/transports/test_bridge.py",
        "tests/transports/test_cors.py",
        "tests/transports/test_endpoint.py",
        "tests/transports/test_host_check.py",
        "tests/transports/test_http_sse.py",
        "tests/transports/test_metadata.py",
        "tests/transports/test_middleware.py",
        "tests/transports/test_streamable_http.py",
        "tests/transports/test_streams.py",
        "tests/transports/test_wsgi.py",
        "tests/stores",
    ),
    lines={
        # Bodies and hosts
        "transports/bodies.py": [
            ("if size > self.limit:", "if len(chunk) > self.limit:"),
            ("while self.is_expected and size <= self.limit:", "while self.is_expected:"),
        ],
        "transports/endpoint.py": [
            ('is_one = headers.count("origin") == 1', "is_one = True"),
            ("if settings.USE_X_FORWARDED_HOST and", "if"),
            ("if lower in ours and lower != ALLOW_ORIGIN.lower():", "if lower in ours:"),
        ],
        # Streamable HTTP and the view
        "transports/streamable_http.py": [
            (
                'is_plain = exchange.verb == "POST" and exchange.session_id is None',
                'is_plain = exchange.verb == "POST"',
            )
        ],
        "transports/responses.py": [
            ("            self.has_ended = True\n            # ASGI", "            # ASGI")
        ],
        "transports/wsgi.py": [
            ("with turns.call(), apart_from_browsers(request):", "with turns.call():"),
            ("request).read(limit + 1)", "request).read(limit)"),
        ],
        # Middleware
        "transports/middleware.py": [
            (
                "user is not self.user and user.pk != principal.user.pk",
                "user is not self.user and user.pk is None",
            ),
            ('        "set-cookie",\n', ""),
            (
                "    if is_inside(session_database()):\n        waiting.append(work)",
                "    if not is_inside(session_database()):\n        waiting.append(work)",
            ),
        ],
        # HTTP+SSE
        "transports/http_sse.py": [
            (
                'method not in ("initialize", "ping"):',
                'method not in ("initialize", "ping", "tools/list"):',
            ),
            ("for pause in (*PAUSES, None):", "for pause in (None,):"),
            ("if page is None or page.has_gap:", "if page is None:"),
            ("return super().take() if self._has_answered else ()", "return super().take()"),
        ],
        # Stores
        "stores/sessions.py": [
            ('while len(log["events"]) > 1 and sum(', "while sum("),
            ('if log["ended"] is None and not (if_orphan', "if not (if_orphan"),
            ("if answer is not None and self.documents.drop(name) else", "if answer else"),
        ],
        "stores/documents.py": [
            (
                "if is_inside(database_of(self.cache)):",
                "if is_inside(None):",
            ),
            ("if database_of(self.cache) is None or self.get(name) == value:", "if True:"),
            (
                'while not self.add(f"lock:{name}", 1, LOCK):',
                'if not self.add(f"lock:{name}", 1, LOCK):',
            ),
        ],
        "stores/last_used.py": [
            (
                "if key not in self._waiting and len(self._waiting) >= self.room:",
                "if len(self._waiting) >= self.room:",
            )
        ],
        # The test client
        "testing/client.py": [
            (
                '"capabilities": self.capabilities if self.answers is None else {},',
                '"capabilities": self.capabilities,',
            )
        ],
    },
)
