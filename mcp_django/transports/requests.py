"""Django's request for a call: complete enough for middleware, tools and the admin's own code."""

from __future__ import annotations

import io
from functools import cached_property
from typing import Any

from django.conf import settings
from django.contrib.messages.storage.base import BaseStorage, Message
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.urls import set_script_prefix

from mcp_django.exposure.memory_sessions import EmptySession


class MemoryMessages(BaseStorage):
    """Messages of the messages framework, kept for as long as the request lives."""

    def _get(self, *args: Any, **kwargs: Any) -> tuple[list[Message], bool]:
        return [], True

    def _store(self, messages: Any, response: Any, *args: Any, **kwargs: Any) -> list[Message]:
        return []


class CallRequest(ASGIRequest):
    """A request that has what browser middleware gives, made when somebody asks for it."""

    _dont_enforce_csrf_checks = True

    @cached_property
    def session(self) -> EmptySession:  # type: ignore[override]  # an annotation of stubs only
        return EmptySession()

    @cached_property
    def _messages(self) -> MemoryMessages:
        return MemoryMessages(self)


def build_request(scope: dict[str, Any], body: bytes) -> HttpRequest:
    """A request from an ASGI scope. `user` is not set."""
    root_path = settings.FORCE_SCRIPT_NAME or scope.get("root_path", "")
    set_script_prefix(root_path.rstrip("/") + "/")
    return CallRequest({"root_path": "", **scope}, io.BytesIO(body))


#: What `furnish` sets.
FURNITURE = ("session", "_messages", "_dont_enforce_csrf_checks")


def furnish(request: HttpRequest) -> None:
    """Give the same to a request that is not ours."""
    request.session = EmptySession()
    request._messages = MemoryMessages(request)  # type: ignore[attr-defined]  # the framework's
    request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]  # Django's own switch
