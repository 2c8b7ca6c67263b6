"""What `manage.py mcp_doctor` finds out: `site` without a request, `endpoint` as clients do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
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


SEVERITIES = ("ok", "info", "warning", "error")
ok, info, warning, error = (partial(Finding, severity) for severity in SEVERITIES)
