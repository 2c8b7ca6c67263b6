"""Authentication classes of Django REST framework, for sites that have clients with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.utils.module_loading import import_string

from mcp_django.auth.authenticators import known_scopes
from mcp_django.auth.users import is_active
from mcp_django.exceptions import AuthenticationFailed
from mcp_django.principal import READ, Principal


class DRF:
    """Asks one authentication class: `DRF("rest_framework.authentication.TokenAuthentication")`.

    DRF's credentials carry no scopes, so the site says here what they are good for. The class is
    asked anew for each call, unless `header_only=True` promises that it looks at nothing but the
    Authorization header.
    """

    guessable = True

    def __init__(
        self, path: str, *, scopes: Iterable[str] = (READ,), header_only: bool = False
    ) -> None:
        self.path = path
        self.scopes = scopes
        self.header_only = header_only
        self._wrapped: Any = None

    def prepare(self) -> None:
        """Import the class and refuse those that must not be used here."""
        self.scopes = known_scopes(self.scopes, of=f"DRF({self.path!r})")
        try:
            found = import_string(self.path)
        except (ImportError, ValueError) as error:
            raise ImproperlyConfigured(
                f"DRF({self.path!r}) cannot be imported: {error}."
            ) from error
        for base in found.__mro__:
            name = f"{base.__module__}.{base.__qualname__}"
            if base.__module__.startswith("oauth2_provider."):
                # It takes tokens from the query string and gives requests without scopes a pass.
                raise ImproperlyConfigured(
                    f"{name} does not check for whom a token was issued. "
                    "Use personal tokens until this package checks such tokens itself."
                )
            if name == "rest_framework.authentication.SessionAuthentication":
                raise ImproperlyConfigured(
                    "Browsers send cookies by themselves, so no page may be trusted with them. "
                    "Use personal tokens in place of SessionAuthentication."
                )
        self._wrapped = found()

    def authenticate(self, request: HttpRequest) -> Principal | None:
        # type ignored: DRF ships no types.
        from rest_framework.exceptions import APIException  # type: ignore[import-untyped]
        from rest_framework.request import Request  # type: ignore[import-untyped]

        try:
            found = self._wrapped.authenticate(Request(request))
        except APIException as error:
            if error.status_code >= 500:
                raise
            # Its own sentence may tell an unknown user from a wrong password.
            raise AuthenticationFailed from error
        if found is None:
            return None
        user, _ = found
        if not is_active(user):
            raise AuthenticationFailed
        return Principal(
            user=user,
            scopes=frozenset(self.scopes),
            method="drf",
            client=f"drf:{self.path.rpartition('.')[2]}",
        )

    def challenge(self) -> str | None:
        from rest_framework.request import Request

        header: str | None = self._wrapped.authenticate_header(Request(HttpRequest()))
        return header
