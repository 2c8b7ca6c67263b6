"""A Django session for requests that have none: it lives as long as its request."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends.base import SessionBase


class EmptySession(SessionBase):
    """Code of the site reads sessions and writes to them. Nothing is ever loaded or stored."""

    def exists(self, session_key: str) -> bool:
        return False

    def create(self) -> None:
        self._session_cache: dict[str, Any] = {}

    def save(self, must_create: bool = False) -> None:  # noqa: FBT001, FBT002  Django's signature
        return None

    def delete(self, session_key: str | None = None) -> None:
        return None

    def load(self) -> dict[str, Any]:
        return {}

    @classmethod
    def clear_expired(cls) -> None:
        return None
