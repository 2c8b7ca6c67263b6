"""Who calls. The names here may be used in settings: nothing else is imported before first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_django.auth.authenticators import Authenticator
    from mcp_django.auth.drf import DRF
    from mcp_django.auth.local import Anonymous, DevUser
    from mcp_django.auth.personal_tokens import PersonalTokens

__all__ = ["DRF", "Anonymous", "Authenticator", "DevUser", "PersonalTokens"]

HOMES = {
    "Anonymous": "local",
    "Authenticator": "authenticators",
    "DRF": "drf",
    "DevUser": "local",
    "PersonalTokens": "personal_tokens",
}


def __getattr__(name: str) -> Any:
    try:
        module = HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(f"{__name__}.{module}"), name)
