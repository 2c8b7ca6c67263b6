"""What holds for everything."""

from __future__ import annotations

from tests.spec.model import V26, Level, Requirement

SECURITY: tuple[Requirement, ...] = (
    Requirement(
        "security:closed",
        number=223,
        level=Level.SHOULD,
        sentence="A server that nobody set up serves nobody.",
        chapter="basic/transports/streamable-http",
        looks_at="an HTTP request",
    ),
    Requirement(
        "security:handles",
        number=224,
        level=Level.MUST,
        sentence="A handle is bound to its user and opens nothing for another.",
        chapter="basic/index",
        looks_at="any list",
        added_in=V26,
    ),
    Requirement(
        "stdio:environment",
        number=225,
        level=Level.SHOULD,
        sentence="Credentials of a process come from its environment.",
        chapter="basic/authorization/index",
        looks_at="stdio",
    ),
    Requirement(
        "security:errors",
        number=226,
        level=Level.PROJECT,
        sentence="An error shows no traceback, no SQL, no path and nobody else's name.",
        chapter="basic/index",
        looks_at="any error",
    ),
    Requirement(
        "definitions:described",
        number=227,
        level=Level.CONFORMANCE,
        sentence="Whatever is listed is described.",
        chapter="schema",
        looks_at="any list",
    ),
    Requirement(
        "security:equal-ids",
        number=228,
        level=Level.PROJECT,
        sentence="Two clients may use the same id at the same time.",
        chapter="basic/index",
        looks_at="tools/call",
        added_in=V26,
    ),
    Requirement(
        "client-requests:ids",
        number=229,
        level=Level.MUST,
        sentence="No two questions of a session have the same id.",
        chapter="basic/index",
        looks_at="a question to the client",
        removed_in=V26,
    ),
    Requirement(
        "logging:default-level",
        number=230,
        level=Level.PROJECT,
        sentence="Until a client names a level the site decides.",
        chapter="server/utilities/logging",
        looks_at="notifications/message",
        removed_in=V26,
    ),
    Requirement(
        "errors:json-body",
        number=231,
        level=Level.PROJECT,
        sentence="A 400 or 404 of the modern era has a JSON-RPC error for its body.",
        chapter="basic/transports/streamable-http",
        looks_at="any error",
        added_in=V26,
    ),
    Requirement(
        "discovery:same-features",
        number=232,
        level=Level.PROJECT,
        sentence="Discovery and handshake announce the same, each in the words of its revision.",
        chapter="server/discover",
        looks_at="server/discover",
        added_in=V26,
    ),
)
