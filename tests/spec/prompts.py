"""Prompts, completion, and pages of lists."""

from __future__ import annotations

from tests.spec.model import V2506, Level, Requirement

PROMPTS: tuple[Requirement, ...] = (
    Requirement(
        "prompts:capability",
        number=156,
        level=Level.MUST,
        sentence="A server with prompts announces them.",
        chapter="server/prompts",
        looks_at="prompts/list",
    ),
    Requirement(
        "prompts:unknown",
        number=157,
        level=Level.SHOULD,
        sentence="An unknown prompt and a missing argument are answered with -32602.",
        chapter="server/prompts",
        looks_at="prompts/get",
    ),
    Requirement(
        "prompts:messages",
        number=158,
        level=Level.MUST,
        sentence="Messages are of the user or the assistant, in content that the revision knows.",
        chapter="server/prompts",
        looks_at="prompts/get",
    ),
    Requirement(
        "prompts:injection",
        number=159,
        level=Level.MUST,
        sentence="Arguments are strings, and none of them becomes part of a Django template.",
        chapter="server/prompts",
        looks_at="prompts/get",
    ),
    Requirement(
        "completion:limit",
        number=160,
        level=Level.MUST,
        sentence="At most a hundred values are answered, and what is said of the rest is true.",
        chapter="server/utilities/completion",
        looks_at="completion/complete",
    ),
    Requirement(
        "completion:references",
        number=161,
        level=Level.SHOULD,
        sentence=(
            "Prompts and templates can be completed; any other reference is answered with -32602."
        ),
        chapter="server/utilities/completion",
        looks_at="completion/complete",
    ),
    Requirement(
        "completion:context",
        number=162,
        level=Level.SHOULD,
        sentence="Arguments that were chosen before are taken into account.",
        chapter="server/utilities/completion",
        looks_at="completion/complete",
        added_in=V2506,
    ),
    Requirement(
        "completion:access",
        number=163,
        level=Level.MUST,
        sentence="Completion knows what its caller may see, and is counted like a call.",
        chapter="server/utilities/completion",
        looks_at="completion/complete",
    ),
    Requirement(
        "lists:cursors",
        number=164,
        level=Level.SHOULD,
        sentence="A cursor is sealed; any other text is answered with -32602, the empty one too.",
        chapter="server/utilities/pagination",
        looks_at="any list",
    ),
    Requirement(
        "lists:pages",
        number=165,
        level=Level.MUST,
        sentence=(
            "The last page has no next cursor, and a list that changes loses and repeats nothing."
        ),
        chapter="server/utilities/pagination",
        looks_at="any list",
    ),
)
