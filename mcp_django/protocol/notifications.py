"""Notifications that this server sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


@dataclass(frozen=True)
class Notification:
    method: str
    params: dict[str, Any]


def resource_updated(uri: str) -> Notification:
    return Notification("notifications/resources/updated", {"uri": uri})


def list_changed(name: str) -> Notification:
    """`name` is tools, prompts or resources."""
    return Notification(f"notifications/{name}/list_changed", {})


def acknowledged(honoured: Mapping[str, Any]) -> Notification:
    """The first message of a subscription: what of the wishes will be heard."""
    return Notification("notifications/subscriptions/acknowledged", {"notifications": honoured})


def cancelled(request_id: str | int, *, reason: str) -> Notification:
    """Takes a request of ours back."""
    params = {"requestId": request_id, "reason": reason}
    return Notification("notifications/cancelled", params)


def log_message(level: str, data: Any, *, logger: str = "") -> Notification:
    params = {"level": level, "data": data}
    if logger:
        params["logger"] = logger
    return Notification("notifications/message", params)


def with_subscription(one: Notification, subscription: str | int) -> Notification:
    """Of which subscription it is (2026-07-28, basic/patterns/subscriptions)."""
    meta = {**one.params.get("_meta", {}), SUBSCRIPTION_KEY: subscription}
    return Notification(one.method, {**one.params, "_meta": meta})


def progress(
    token: str | int, value: float, *, total: float | None = None, message: str | None = None
) -> Notification:
    params: dict[str, Any] = {"progressToken": token, "progress": value}
    if total is not None:
        params["total"] = total
    if message is not None:
        params["message"] = message
    return Notification("notifications/progress", params)
