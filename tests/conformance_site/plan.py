"""Which revision is asked over which transport, and which scenarios say nothing there."""

from __future__ import annotations

from dataclasses import dataclass

HTTP, HTTP_SSE, STDIO = "Streamable HTTP", "HTTP+SSE", "stdio"

HEADER_CHECK = "sep-2575-http-server-header-mismatch-400"
#: About Streamable HTTP, which is the bridge's own where there is one.
BRIDGED = {
    "server-session-lifecycle": "a bridge gives out its own sessions",
    "server-initialize:server-session-id-visible-ascii": "a bridge gives out its own sessions",
    "server-sse-polling": "a bridge has no event ids",
    "server-sse-multiple-streams": "a bridge has its own streams",
    "http-header-validation": "a bridge reads no headers",
    "http-custom-header-server-validation": "a bridge reads no headers",
}
PIPED = {
    **BRIDGED,
    "dns-rebinding-protection": "a pipe has no host",
    f"server-stateless:{HEADER_CHECK}": "a pipe has no headers",
}
#: Scenarios of extensions, by the starts of their names. No revision has them.
EXTENSIONS = {
    "tasks-": "tasks are an extension that is not there",
    "sep-2640-": "skills are an extension that is not there",
}
#: Scenarios of what came with a later revision, and the feature that this one lacks.
LATER = {
    "2024-11-05": {"tools-call-audio": "audio", "tools-call-elicitation": "elicitation"},
    "2025-03-26": {"tools-call-elicitation": "elicitation"},
}


@dataclass(frozen=True, kw_only=True)
class Run:
    revision: str
    transport: str

    @property
    def scenarios_of(self) -> str:
        """The suite has none for the first two revisions. Those of the third are asked."""
        return "2025-06-18" if self.revision in LATER else self.revision

    @property
    def is_forced(self) -> bool:
        return self.scenarios_of != self.revision

    @property
    def has_handshake(self) -> bool:
        return self.revision != "2026-07-28"

    @property
    def is_direct(self) -> bool:
        """Whether the suite can ask the site itself, in this revision."""
        return self.transport == HTTP and self.revision in ("2025-11-25", "2026-07-28")

    @property
    def is_slow(self) -> bool:
        """Whether there is a process for each scenario."""
        return self.is_forced or (self.transport == STDIO and self.has_handshake)

    @property
    def left_out(self) -> dict[str, str]:
        """Scenarios, or a check of one as `scenario:check`, and why."""
        bridged = {HTTP: {}, HTTP_SSE: BRIDGED, STDIO: PIPED}[self.transport]
        later = LATER.get(self.revision, {})
        return {**bridged, **{name: f"no {feature} yet" for name, feature in later.items()}}

    def __str__(self) -> str:
        return f"{self.revision} over {self.transport}"


RUNS = [
    Run(revision=revision, transport=transport)
    for transport, revisions in {
        HTTP: ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"),
        HTTP_SSE: ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"),
        STDIO: ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"),
    }.items()
    for revision in revisions
]
