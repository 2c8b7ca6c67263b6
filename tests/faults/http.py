"""Faults in transports/http, stores and testing."""

from __future__ import annotations

from tests.faults.model import Fault, Room

HTTP = Room(
    tests=(
        "tests/transports/test_session_ids.py",
        "tests/testing",
        "tests/transports/http",
        "tests/stores",
    ),
    faults=(
        # Bodies and hosts
        Fault(
            file="transports/http/bodies.py",
            old="if size > self.limit:",
            new="if len(chunk) > self.limit:",
        ),
        Fault(
            file="transports/http/bodies.py",
            old="while self.is_expected and size <= self.limit:",
            new="while self.is_expected:",
        ),
        Fault(
            file="transports/http/endpoint.py",
            old='is_one = headers.count("origin") == 1',
            new="is_one = True",
        ),
        Fault(
            file="transports/http/endpoint.py",
            old="if settings.USE_X_FORWARDED_HOST and",
            new="if",
        ),
        Fault(
            file="transports/http/endpoint.py",
            old="if lower in ours and lower != ALLOW_ORIGIN.lower():",
            new="if lower in ours:",
        ),
        # Streamable HTTP and the view
        Fault(
            file="transports/http/streamable_http.py",
            old='is_plain = exchange.verb == "POST" and exchange.session_id is None',
            new='is_plain = exchange.verb == "POST"',
        ),
        Fault(
            file="transports/http/responses.py",
            old="            self.has_ended = True\n            # ASGI",
            new="            # ASGI",
        ),
        Fault(
            file="transports/http/wsgi.py",
            old="with turns.call(), apart_from_browsers(request):",
            new="with turns.call():",
        ),
        Fault(
            file="transports/http/wsgi.py",
            old="body = request.read(limit + 1)",
            new="body = request.read(limit)",
        ),
        # Middleware
        Fault(
            file="transports/http/middleware.py",
            old="user is not caller.user and user.pk != principal.user.pk",
            new="user is not caller.user and user.pk is None",
        ),
        Fault(
            file="transports/http/middleware.py",
            old='        "set-cookie",\n',
            new="",
        ),
        Fault(
            file="transports/http/middleware.py",
            old="    if is_inside(session_database()):\n        waiting.append(work)",
            new="    if not is_inside(session_database()):\n        waiting.append(work)",
        ),
        # HTTP+SSE
        Fault(
            file="transports/http/http_sse.py",
            old='BEFORE_HANDSHAKE = frozenset({"initialize", "ping"})',
            new='BEFORE_HANDSHAKE = frozenset({"initialize", "ping", "tools/list"})',
        ),
        Fault(
            file="transports/http/http_sse.py",
            old="for pause in (*PAUSES, None):",
            new="for pause in (None,):",
        ),
        Fault(
            file="transports/http/http_sse.py",
            old="if page is None or page.has_gap:",
            new="if page is None:",
        ),
        Fault(
            file="transports/http/http_sse.py",
            old="return super().take() if self._has_answered else ()",
            new="return super().take()",
        ),
        # Stores
        Fault(
            file="stores/bounds.py",
            old="if kept and room < 0:",
            new="if room < 0:",
        ),
        Fault(
            file="stores/cache.py",
            old='if holder not in ("", owner) and self._holds(holder):',
            new='if holder not in ("", owner):',
        ),
        Fault(
            file="stores/cache.py",
            old='if log["ended"] is not None or (only_orphan',
            new="if (only_orphan",
        ),
        Fault(
            file="stores/cache.py",
            old="if answer is None or not self.documents.drop(name):",
            new="if answer is None:",
        ),
        Fault(
            file="stores/documents.py",
            old="if using is not None and is_inside(using):",
            new="if using is None and is_inside(using):",
        ),
        Fault(
            file="stores/documents.py",
            old="if database_of(self.cache) is None or self.get(name) == value:",
            new="if True:",
        ),
        Fault(
            file="stores/documents.py",
            old="while not self.add(key, 1, LOCK):",
            new="if not self.add(key, 1, LOCK):",
        ),
        Fault(
            file="stores/last_used.py",
            old="if key not in self._waiting and len(self._waiting) >= self.room:",
            new="if len(self._waiting) >= self.room:",
        ),
        # The test client
        Fault(
            file="testing/client.py",
            old='"capabilities": self.capabilities if self.answers is None else {},',
            new='"capabilities": self.capabilities,',
        ),
    ),
)
