"""Mistakes in a function that is registered as a tool, found when it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

Permission: TypeAlias = str | Callable[[HttpRequest], Any]


def check_permission(permission: Permission | None, *, tool: str) -> Permission | None:
    if permission is None or callable(permission):
        return permission
    app, _, codename = permission.partition(".")
    if app and codename:
        return permission
    raise ImproperlyConfigured(
        f"{permission!r} is not a permission for the tool {tool!r}. Write the label of the app, "
        'a dot and the codename: permission="shop.view_order".'
    )


def check_atomic(function: Callable[..., Any], *, tool: str) -> bool:
    if iscoroutinefunction(function):
        raise ImproperlyConfigured(
            f"The tool {tool!r} is async, and a transaction cannot span an await. "
            "Drop atomic=True, or make the function sync."
        )
    return True


def check_function(function: Any) -> None:
    if not inspect.isfunction(function):
        raise ImproperlyConfigured(f"@mcp.tool decorates functions, not {function!r}.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ImproperlyConfigured(
            f"{function.__qualname__}() yields. A tool returns one value; say what happens "
            "meanwhile with mcp.Context.progress()."
        )
