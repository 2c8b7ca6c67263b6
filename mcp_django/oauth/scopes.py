"""The scopes that a client may ask for."""

from __future__ import annotations

from typing import Any

from mcp_django.oauth.toolkit import SCOPE_DESCRIPTIONS, SettingsScopes, is_self_registered
from mcp_django.principal import READ


class Scopes(SettingsScopes):  # type: ignore[misc]  # untyped base
    """Those of the endpoint and, for clients that the site registered itself, of its settings."""

    def get_all_scopes(self) -> dict[str, Any]:
        return {**super().get_all_scopes(), **SCOPE_DESCRIPTIONS}

    def get_available_scopes(
        self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any
    ) -> list[str]:
        if application is not None and is_self_registered(application):
            return list(SCOPE_DESCRIPTIONS)
        return list(self.get_all_scopes())

    def get_default_scopes(
        self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if application is not None and is_self_registered(application):
            return [READ]
        return super().get_default_scopes(application, request)
