"""The legacy handshake, and what a result may say in each revision."""

from __future__ import annotations

from tests.spec.model import V26, V2503, V2506, V2511, Level, Requirement

LIFECYCLE: tuple[Requirement, ...] = (
    Requirement(
        "lifecycle:version-agreed",
        number=21,
        level=Level.MUST,
        sentence=(
            "A handshake for a legacy revision that is served is answered with that revision."
        ),
        chapter="basic/lifecycle",
        looks_at="initialize",
        removed_in=V26,
    ),
    Requirement(
        "lifecycle:version-offered",
        number=22,
        level=Level.MUST,
        sentence=(
            "A handshake for any other revision is answered with the newest that has handshakes."
        ),
        chapter="basic/lifecycle",
        looks_at="initialize",
        removed_in=V26,
    ),
    Requirement(
        "lifecycle:result",
        number=23,
        level=Level.MUST,
        sentence=(
            "The answer names the revision, the capabilities, and the server with its version."
        ),
        chapter="basic/lifecycle",
        looks_at="initialize",
        removed_in=V26,
    ),
    Requirement(
        "lifecycle:capabilities-served",
        number=24,
        level=Level.MUST,
        sentence="The handshake announces what is served and nothing else.",
        chapter="basic/lifecycle",
        looks_at="initialize",
        removed_in=V26,
    ),
    Requirement(
        "lifecycle:initialized",
        number=25,
        level=Level.MUST,
        sentence="The client's word that it is ready is accepted.",
        chapter="basic/lifecycle",
        looks_at="notifications/initialized",
        removed_in=V26,
    ),
    Requirement(
        "lifecycle:quiet-before-initialized",
        number=26,
        level=Level.SHOULD,
        sentence="The server asks the client nothing before it has said that it is ready.",
        chapter="basic/lifecycle",
        looks_at="a question to the client",
        removed_in=V26,
    ),
    Requirement(
        "lifecycle:negotiated-only",
        number=27,
        level=Level.MUST,
        sentence="A peer gets what the agreed revision can say, and nothing newer.",
        chapter="basic/lifecycle",
        looks_at="any result",
        added_in=V2506,
        removed_in=V26,
    ),
    Requirement(
        "lifecycle:ping",
        number=28,
        level=Level.MUST,
        sentence="A ping is answered at once with an empty result, whatever else is going on.",
        chapter="basic/utilities/ping",
        looks_at="ping",
        removed_in=V26,
    ),
    Requirement(
        "lifecycle:params-required",
        number=29,
        level=Level.MUST,
        sentence="A handshake without revision, capabilities or client is answered with -32602.",
        chapter="basic/lifecycle",
        looks_at="initialize",
        removed_in=V26,
    ),
    Requirement(
        "lifecycle:completions-capability",
        number=30,
        level=Level.MUST,
        sentence="Completion is announced from the revision on that has a word for it.",
        chapter="server/utilities/completion",
        looks_at="capabilities",
        added_in=V2503,
        feature="completions_capability",
    ),
    Requirement(
        "render:members",
        number=31,
        level=Level.PROJECT,
        sentence="An object has the members that its revision knows, and no others.",
        chapter="schema",
        looks_at="any result",
        removed_in=V26,
    ),
    Requirement(
        "render:content-blocks",
        number=32,
        level=Level.PROJECT,
        sentence="Sound and links take another shape where a revision has no block for them.",
        chapter="server/tools",
        looks_at="tools/call",
        removed_in=V26,
    ),
    Requirement(
        "render:modern-members",
        number=33,
        level=Level.PROJECT,
        sentence="What only modern results have is not added to legacy ones.",
        chapter="schema",
        looks_at="any result",
        removed_in=V26,
        lacking="result_type",
    ),
    Requirement(
        "lifecycle:tasks-capability",
        number=34,
        level=Level.MUST,
        sentence=(
            "Tasks are announced where they are served, and never by the old word in the modern "
            "era."
        ),
        chapter="basic/utilities/tasks",
        looks_at="capabilities",
        added_in=V2511,
    ),
)
