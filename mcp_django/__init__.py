"""Serve a Django site over the Model Context Protocol.

    import mcp_django as mcp

    @mcp.register(Order)
    class OrderExposure(mcp.ModelExposure):
        fields = ["number", "status", "total"]

Nothing of Django is imported before one of these names is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_django.version import __version__ as __version__

if TYPE_CHECKING:
    from mcp_django.context import CallContext as Context
    from mcp_django.exceptions import (
        AlreadyRegistered,
        Cancelled,
        Declined,
        NotRegistered,
        ToolError,
    )
    from mcp_django.exposure.options import ModelExposure
    from mcp_django.exposure.prompts.functions import prompt
    from mcp_django.exposure.registry import is_registered, register, unregister
    from mcp_django.exposure.resources.functions import resource
    from mcp_django.exposure.rest.registration import (
        register_router,
        register_view,
        register_viewset,
    )
    from mcp_django.exposure.tools.functions import tool
    from mcp_django.levels import Level
    from mcp_django.protocol.content import (
        Annotations,
        EmbeddedResource,
        ResourceContents,
        ResourceLink,
    )
    from mcp_django.protocol.content import AudioContent as Audio
    from mcp_django.protocol.content import ImageContent as Image
    from mcp_django.protocol.content import TextContent as Text
    from mcp_django.protocol.questions import Root, SampledMessage
    from mcp_django.protocol.results import PromptMessage, ToolResult
    from mcp_django.subscriptions.outbox import flush
    from mcp_django.subscriptions.receivers import touch

__all__ = [
    "AlreadyRegistered",
    "Annotations",
    "Audio",
    "Cancelled",
    "Context",
    "Declined",
    "EmbeddedResource",
    "Image",
    "Level",
    "ModelExposure",
    "NotRegistered",
    "PromptMessage",
    "ResourceContents",
    "ResourceLink",
    "Root",
    "SampledMessage",
    "Text",
    "ToolError",
    "ToolResult",
    "flush",
    "is_registered",
    "prompt",
    "register",
    "register_router",
    "register_view",
    "register_viewset",
    "resource",
    "tool",
    "touch",
    "unregister",
]

MODULES = {
    "exceptions": ("AlreadyRegistered", "Cancelled", "Declined", "NotRegistered", "ToolError"),
    "exposure.options": ("ModelExposure",),
    "exposure.prompts.functions": ("prompt",),
    "exposure.registry": ("is_registered", "register", "unregister"),
    "exposure.resources.functions": ("resource",),
    "exposure.rest.registration": ("register_router", "register_view", "register_viewset"),
    "exposure.tools.functions": ("tool",),
    "levels": ("Level",),
    "protocol.content": ("Annotations", "EmbeddedResource", "ResourceContents", "ResourceLink"),
    "protocol.questions": ("Root", "SampledMessage"),
    "protocol.results": ("PromptMessage", "ToolResult"),
    "subscriptions.outbox": ("flush",),
    "subscriptions.receivers": ("touch",),
}
HOMES = {name: (module, name) for module, names in MODULES.items() for name in names} | {
    "Audio": ("protocol.content", "AudioContent"),
    "Context": ("context", "CallContext"),
    "Image": ("protocol.content", "ImageContent"),
    "Text": ("protocol.content", "TextContent"),
}


def __getattr__(name: str) -> Any:
    try:
        module, attribute = HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
