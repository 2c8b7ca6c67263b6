"""HTTP+SSE, the transport of the first revision."""

from __future__ import annotations

from tests.spec.model import V2503, Level, Requirement

HTTP_SSE: tuple[Requirement, ...] = (
    Requirement(
        "http-sse:event-stream",
        number=65,
        level=Level.MUST,
        sentence="A GET is answered with a stream of events.",
        chapter="basic/transports",
        looks_at="HTTP GET",
        removed_in=V2503,
    ),
    Requirement(
        "http-sse:endpoint-event",
        number=66,
        level=Level.MUST,
        sentence=(
            "The first event says where to post, with whatever prefix the site is mounted at."
        ),
        chapter="basic/transports",
        looks_at="an event stream",
        removed_in=V2503,
    ),
    Requirement(
        "http-sse:message-event",
        number=67,
        level=Level.MUST,
        sentence="Each later event is one message.",
        chapter="basic/transports",
        looks_at="an event stream",
        removed_in=V2503,
    ),
    Requirement(
        "http-sse:accepted",
        number=68,
        level=Level.MUST,
        sentence="A POST is answered with 202, and its message on the stream.",
        chapter="basic/transports",
        looks_at="an HTTP request",
        removed_in=V2503,
    ),
    Requirement(
        "http-sse:refusals",
        number=69,
        level=Level.CONFORMANCE,
        sentence=(
            "A broken session is 400 and an unknown one 404; body, verb and size as elsewhere."
        ),
        chapter="basic/transports",
        looks_at="an HTTP request",
        removed_in=V2503,
    ),
    Requirement(
        "http-sse:origin",
        number=70,
        level=Level.MUST,
        sentence="Both addresses look at the origin.",
        chapter="basic/transports",
        looks_at="an HTTP request",
        removed_in=V2503,
    ),
    Requirement(
        "http-sse:foreign",
        number=71,
        level=Level.PROJECT,
        sentence="A session of somebody else is answered with 404.",
        chapter="basic/transports",
        looks_at="an HTTP request",
        removed_in=V2503,
    ),
    Requirement(
        "http-sse:close",
        number=72,
        level=Level.PROJECT,
        sentence="The end of the stream ends the session and the work for it.",
        chapter="basic/transports",
        looks_at="an event stream",
        removed_in=V2503,
    ),
    Requirement(
        "http-sse:endpoint-unguessable",
        number=73,
        level=Level.PROJECT,
        sentence="The address to post to is of the same origin and cannot be guessed.",
        chapter="basic/transports",
        looks_at="an event stream",
        removed_in=V2503,
    ),
)
