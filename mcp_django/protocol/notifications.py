"""Notifications that this server sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Notification:
    method: str
    params: dict[str, Any]


def progress(
    token: str | int, value: float, *, total: float | None = None, message: str | None = None
) -> Notification:
    params: dict[str, Any] = {"progressToken": token, "progress": value}
    if total is not None:
        params["total"] = total
    if message is not None:
        params["message"] = message
    return Notification("notifications/progress", params)
