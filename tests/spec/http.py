"""Streamable HTTP as legacy clients know it."""

from __future__ import annotations

from tests.spec.model import V26, V2503, V2506, V2511, Level, Requirement

HTTP: tuple[Requirement, ...] = (
    Requirement(
        "http:one-path",
        number=35,
        level=Level.MUST,
        sentence="One path serves every verb, if only by saying that it is not served.",
        chapter="basic/transports",
        looks_at="an HTTP request",
        added_in=V2503,
        removed_in=V26,
    ),
    Requirement(
        "http:origin",
        number=36,
        level=Level.MUST,
        sentence="An origin that is not ours is answered with 403; an absent one passes.",
        chapter="basic/transports/streamable-http",
        looks_at="an HTTP request",
        added_in=V2511,
    ),
    Requirement(
        "http:localhost",
        number=37,
        level=Level.CONFORMANCE,
        sentence=(
            "On this machine its own names pass with any port, and foreign hosts and origins do "
            "not."
        ),
        chapter="basic/transports/streamable-http",
        looks_at="an HTTP request",
        added_in=V2511,
    ),
    Requirement(
        "http:accepted",
        number=38,
        level=Level.MUST,
        sentence="A body without any request is answered with 202 and nothing else.",
        chapter="basic/transports",
        looks_at="any notification",
        added_in=V2503,
        removed_in=V26,
    ),
    Requirement(
        "http:answer-type",
        number=39,
        level=Level.MUST,
        sentence="A request is answered with 200, as JSON or as a stream of events.",
        chapter="basic/transports",
        looks_at="an HTTP response",
        added_in=V2503,
        removed_in=V26,
    ),
    Requirement(
        "http:unsupported-revision",
        number=45,
        level=Level.MUST,
        sentence="A revision in the header that nobody serves is answered with 400.",
        chapter="basic/transports/streamable-http",
        looks_at="an HTTP request",
        added_in=V2506,
    ),
    Requirement(
        "http:revision-assumed",
        number=46,
        level=Level.SHOULD,
        sentence=(
            "Without the header a request has the revision of its session, and without either "
            "2025-03-26."
        ),
        chapter="basic/transports",
        looks_at="an HTTP request",
        added_in=V2506,
        removed_in=V26,
    ),
    Requirement(
        "http:header-case",
        number=47,
        level=Level.CONFORMANCE,
        sentence="The names of headers are read without regard to case.",
        chapter="basic/transports/streamable-http",
        looks_at="an HTTP request",
    ),
    Requirement(
        "http:get",
        number=48,
        level=Level.MUST,
        sentence="A GET is answered with a stream or with 405.",
        chapter="basic/transports",
        looks_at="HTTP GET",
        added_in=V2503,
        removed_in=V26,
    ),
    Requirement(
        "http:one-stream",
        number=50,
        level=Level.MUST,
        sentence="Each message of the server travels on exactly one stream.",
        chapter="basic/transports",
        looks_at="an event stream",
        added_in=V2503,
        removed_in=V26,
    ),
    Requirement(
        "http:stream-ends",
        number=51,
        level=Level.SHOULD,
        sentence="The stream of a request ends behind its answer.",
        chapter="basic/transports",
        looks_at="an event stream",
        added_in=V2503,
        removed_in=V26,
    ),
    Requirement(
        "http:related-messages",
        number=52,
        level=Level.SHOULD,
        sentence="What stands before the answer belongs to the same request.",
        chapter="basic/transports",
        looks_at="an event stream",
        added_in=V2503,
        removed_in=V26,
    ),
    Requirement(
        "http:disconnect-is-no-cancel",
        number=53,
        level=Level.SHOULD,
        sentence="A legacy client that loses its connection has cancelled nothing.",
        chapter="basic/transports",
        looks_at="an event stream",
        added_in=V2503,
        removed_in=V26,
        lacking="disconnect_cancels",
    ),
    Requirement(
        "http:concurrent-requests",
        number=58,
        level=Level.CONFORMANCE,
        sentence="Requests of one client at the same time get each their own answer.",
        chapter="basic/transports/streamable-http",
        looks_at="tools/call",
        added_in=V2511,
    ),
    Requirement(
        "http:refusals",
        number=59,
        level=Level.PROJECT,
        sentence=(
            "Verb, size, type and Accept have each a status of their own: 405, 413, 415, 406."
        ),
        chapter="basic/transports",
        looks_at="an HTTP request",
        added_in=V2503,
        removed_in=V26,
    ),
    Requirement(
        "http:accept-absent",
        number=60,
        level=Level.PROJECT,
        sentence="A request without Accept takes everything.",
        chapter="basic/transports",
        looks_at="an HTTP request",
        added_in=V2503,
        removed_in=V26,
    ),
    Requirement(
        "http:unknown-response",
        number=61,
        level=Level.MUST,
        sentence=(
            "An answer belongs to the question with its id in the same session; any other is "
            "taken with 202 and forgotten."
        ),
        chapter="basic/transports",
        looks_at="a client response",
        added_in=V2503,
        removed_in=V26,
    ),
)
