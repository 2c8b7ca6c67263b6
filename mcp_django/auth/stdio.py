"""Who a process acts as that a person has started: a user by name."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth import get_user_model
from django.http import HttpRequest

from mcp_django.auth.authenticators import known_scopes
from mcp_django.auth.cache import PrincipalCache
from mcp_django.auth.users import is_active
from mcp_django.exceptions import AuthenticationFailed
from mcp_django.exposure.generation import mark
from mcp_django.principal import SCOPES, Principal

#: A method of recognising callers, and the program that stands at the other end of the pipe.
STDIO = "stdio"


class NamedUser:
    """Whoever has started the process is this user, for as long as the user is active."""

    def __init__(self, username: str, *, scopes: Iterable[str] = SCOPES) -> None:
        """Raises ImproperlyConfigured for an unknown scope."""
        self.username = username
        self.scopes = known_scopes(scopes, of="--scope")
        self._cache = PrincipalCache(size=1)

    def authenticate(self, request: HttpRequest) -> Principal:
        """The user, as read within the last second. Raises AuthenticationFailed."""
        now = mark()
        known = self._cache.get(b"", mark=now)
        if known is None:
            known = self._read()
            self._cache.keep(b"", known, mark=now)
        return known

    def _read(self) -> Principal:
        users = get_user_model()
        try:
            user = users._default_manager.get_by_natural_key(self.username)
        except users.DoesNotExist:
            user = None
        if user is None or not is_active(user):
            raise AuthenticationFailed(f"There is no active user {self.username!r}.")
        return Principal(user=user, scopes=self.scopes, method=STDIO, client=STDIO)
