"""Who calls. Settings may use the names here: nothing else is imported before first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_django.auth.authenticators import (
        DRF,
        Anonymous,
        Authenticator,
        DevUser,
        PersonalTokens,
    )
    from mcp_django.auth.jwt_bearer import JWTBearer

__all__ = ["DRF", "Anonymous", "Authenticator", "DevUser", "JWTBearer", "PersonalTokens"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "jwt_bearer" if name == "JWTBearer" else "authenticators"
    return getattr(import_module(f"{__name__}.{module}"), name)
