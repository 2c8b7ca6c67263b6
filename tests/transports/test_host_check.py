"""Who is not let in at all: a Host or an Origin that is not ours."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_django.protocol.headers import LONGEST_HEADERS, LONGEST_VALUE
from mcp_django.transports.endpoint import check_host_and_origin, understand
from tests.spec import requirement
from tests.transports.test_endpoint import sent

#: Host, Origin, and the status of the refusal.
HOSTS = [
    *(
        (host, None, None)
        for host in ("testserver", "testserver:8000", "TESTSERVER", "testserver.")
    ),
    ("testserver", "http://testserver", None),
    ("testserver", "http://other.example", 403),
    ("testserver", "http://testserver:8000", 403),
    ("testserver", "https://testserver", 403),
    ("testserver", "http://testserver/", 403),
    ("testserver", "http://testserver.evil.example", 403),
    ("testserver", "null", 403),
    ("testserver", "", 403),
    ("testserver", "http://localhost:3000", 403),
    ("localhost", None, None),
    ("localhost:8000", "http://localhost:3000", None),
    ("127.0.0.1:8000", "http://localhost", None),
    ("localhost", "https://127.0.0.1:1", None),
    ("[::1]:8000", "http://[::1]:5173", None),
    ("localhost", "http://evil.example", 403),
    ("localhost", "http://localhost.evil.example", 403),
    ("localhost", "http://localhost@evil.example", 403),
    ("localhost", "http://evil.example@localhost", 403),
    ("localhost", "app://localhost", 403),
    ("localhost", "http://[::1", 403),
    ("localhost", "http://localhost:x", 403),
    ("localhost", "null", 403),
    *(
        ("evil.example", origin, 400)
        for origin in (None, "http://testserver", "http://evil.example")
    ),
    ("testserver, evil.example", None, 400),
    *((host, None, 400) for host in ("testserver:80:80", "test server", "", None)),
]
FRONT_END = {
    "MCP_DJANGO": {
        "PUBLIC_URL": "https://Shop.example.com/path",
        "ALLOWED_ORIGINS": ["https://chat.example.com"],
    }
}
FORWARDED = {"host": "inner.example", "x-forwarded-host": "testserver"}
FORGED = {"host": "testserver", "x-forwarded-host": "evil.example"}
BEHIND_PROXY = {"USE_X_FORWARDED_HOST": True}
NO_HOSTS = {"ALLOWED_HOSTS": []}
IN_DEVELOPMENT = {"ALLOWED_HOSTS": [], "DEBUG": True}
THIS_MACHINE = [{"host": host} for host in ("localhost", "a.localhost:1", "[::1]", "127.0.0.1")]


@requirement("http:origin", "http:localhost", "envelope:origin-first")
@pytest.mark.parametrize(
    ("changes", "headers", "lines", "status"),
    [
        *(({}, {"host": host, "origin": origin}, [], status) for host, origin, status in HOSTS),
        # Two lines are refused though both are ours.
        ({}, {}, [("host", "testserver")], 400),
        ({}, {}, [("origin", "http://testserver")], None),
        ({}, {}, [("origin", "http://testserver")] * 2, 403),
        (FRONT_END, {"origin": "https://shop.example.com"}, [], None),
        (FRONT_END, {"origin": "https://chat.example.com"}, [], None),
        (FRONT_END, {"origin": "http://shop.example.com"}, [], 403),
        (FRONT_END, {"origin": "http://testserver"}, [], 403),
        ({}, FORWARDED, [], 400),
        ({}, FORGED, [], None),
        (BEHIND_PROXY, FORWARDED, [], None),
        (BEHIND_PROXY, FORGED, [], 400),
        (BEHIND_PROXY, {}, [], None),
        *((NO_HOSTS, headers, [], 400) for headers in THIS_MACHINE),
        *((IN_DEVELOPMENT, headers, [], None) for headers in THIS_MACHINE),
        (IN_DEVELOPMENT, {"host": "evil.example"}, [], 400),
    ],
)
def test_a_host_or_an_origin_that_the_site_does_not_call_its_own_is_refused(
    settings, changes, headers, lines, status
):
    for name, value in changes.items():
        setattr(settings, name, value)

    refusal = check_host_and_origin(sent(headers, *lines))

    assert (refusal and refusal.status) == status
    if refusal is not None:
        wire = json.loads(refusal.body)
        assert "id" not in wire
        assert wire["error"]["code"] == -32600


@given(st.text(alphabet="htps:/[]@.:1localhost evi\\%#?", max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_origin_is_let_in_or_refused(origin):
    refusal = check_host_and_origin(sent({"host": "localhost", "origin": origin}))

    assert refusal is None or refusal.status == 403


# Long headers


LONG = b"access_tokens=".ljust(LONGEST_VALUE + 1, b"x")


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"X-Long": "x" * LONGEST_VALUE}, b"", None),
        ({"X-Long": "x" * (LONGEST_VALUE + 1)}, b"", 431),
        ({"x" * LONGEST_HEADERS: ""}, b"", 431),
        ({"Host": "x" * (LONGEST_VALUE + 1)}, b"", 431),
        ({f"X-{n}": "x" * LONGEST_VALUE for n in range(8)}, b"", 431),
        # What nobody takes apart holds no credential for anybody.
        ({}, LONG[:-1], None),
        ({}, LONG, 414),
        ({"Origin": "http://evil.example"}, LONG, 414),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_too_long_is_refused_before_anything_else(headers, query, status):
    refusal = check_host_and_origin(sent(headers), query)

    assert (refusal and refusal.status) == status
    if refusal is not None:
        assert f"{LONGEST_VALUE} bytes" in json.loads(refusal.body)["error"]["message"]


@pytest.mark.thorough
def test_what_strangers_say_in_headers_is_not_remembered():
    lines = 6
    tracemalloc.start()
    try:
        for n in range(300):
            text = f"x{n}".ljust(LONGEST_VALUE, "x")
            headers = sent({"Host": text, "Content-Type": text}, *[("Accept", text)] * lines)
            assert check_host_and_origin(headers) is not None
            assert understand("POST", headers, b"").refusal is not None
        remembered = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert remembered < 300 * LONGEST_VALUE / 4
