"""What `manage.py mcp_doctor` finds out: `site` without a request, `endpoint` as clients do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Finding:
    #: "ok", "info", "warning" or "error".
    severity: str
    sentence: str
    #: What to type, or to change.
    hint: str = ""
    #: The id of the system check that found it.
    check: str = ""
    #: The clients that meet it. Empty: it is not about some of them.
    clients: tuple[str, ...] = ()


def ok(sentence: str) -> Finding:
    return Finding(severity="ok", sentence=sentence)


def info(sentence: str, hint: str = "") -> Finding:
    return Finding(severity="info", sentence=sentence, hint=hint)


def warning(sentence: str, hint: str) -> Finding:
    return Finding(severity="warning", sentence=sentence, hint=hint)


def error(sentence: str, hint: str) -> Finding:
    return Finding(severity="error", sentence=sentence, hint=hint)


def judge_clock(whose: str, seconds: float) -> Finding:
    """Return what to say of a clock that is so many seconds ahead of that of this process."""
    if abs(seconds) <= MOST_SKEW:
        return ok(f"The clock of {whose} agrees with the clock of this machine.")
    side = "ahead of" if seconds > 0 else "behind"
    return warning(
        f"The clock of {whose} is {abs(seconds):.0f} seconds {side} the clock of this machine, so "
        "tokens expire too early or too late.",
        "timedatectl set-ntp true, on the machine whose clock is wrong.",
    )


#: Seconds that two clocks may differ by: answers take a while, and headers have whole seconds.
MOST_SKEW = 30.0
