"""The project's middleware round a call, without what only browsers need.

A class that sets a tenant or a language must run, or tools would work on the wrong rows. Django's
own browser classes must not: they would ask for sessions, CSRF tokens and cookies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.core.handlers.exception import convert_exception_to_response
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponseBase
from django.utils.module_loading import import_string

from mcp_django.conf import get_config

Handler: TypeAlias = Callable[[HttpRequest], HttpResponseBase]

BROWSER_ONLY = (
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.common.BrokenLinkEmailsMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.auth.middleware.RemoteUserMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.cache.UpdateCacheMiddleware",
    "django.middleware.cache.FetchFromCacheMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
)


def chosen() -> list[str]:
    """The dotted paths that run round a call, in order. Empty: the fast path."""
    choice = get_config().run_middleware
    if choice == "none":
        return []
    if choice == "project":
        return list(settings.MIDDLEWARE)
    if choice == "auto":
        return [path for path in settings.MIDDLEWARE if not is_browser_only(path)]
    return list(choice)


def is_browser_only(path: str) -> bool:
    """Whether a middleware is one of Django's browser classes, or a subclass of one."""
    middleware = import_string(path)
    if not isinstance(middleware, type):
        return False
    bases = {f"{base.__module__}.{base.__qualname__}" for base in middleware.__mro__}
    return not bases.isdisjoint(BROWSER_ONLY)


class Chain:
    """Middleware loaded once, round any innermost function."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._view_hooks: list[Callable[..., Any]] = []
        handler: Handler = guarded(self._innermost)
        for path in reversed(paths):
            handler = self._wrap(import_string(path), handler)
        self._handler = handler

    def __call__(
        self, request: HttpRequest, innermost: Handler, *, view: Callable[..., Any]
    ) -> HttpResponseBase:
        """The response of `innermost`, or of a middleware that answered first."""
        request._mcp_call = (innermost, view)  # type: ignore[attr-defined]  # for _innermost
        return self._handler(request)

    def _innermost(self, request: HttpRequest) -> HttpResponseBase:
        innermost, view = request._mcp_call  # type: ignore[attr-defined]
        for hook in self._view_hooks:
            response = hook(request, view, (), {})
            if response is not None:
                return response  # type: ignore[no-any-return]  # Django's own protocol
        return innermost(request)  # type: ignore[no-any-return]

    def _wrap(self, middleware: Any, handler: Handler) -> Handler:
        is_sync = getattr(middleware, "sync_capable", True)
        inner = handler if is_sync else sync_to_async(handler, thread_sensitive=True)
        try:
            wrapped = middleware(inner)
        except MiddlewareNotUsed:
            return handler
        if hasattr(wrapped, "process_view"):
            self._view_hooks.insert(0, in_sync(wrapped.process_view))
        return guarded(wrapped if is_sync else async_to_sync(wrapped))


def guarded(handler: Handler) -> Handler:
    """As Django guards each layer: what it raises becomes a response for the layers outside."""
    return cast("Handler", convert_exception_to_response(handler))


def in_sync(hook: Callable[..., Any]) -> Callable[..., Any]:
    return async_to_sync(hook) if iscoroutinefunction(hook) else hook


class Loaded:
    """The chain of this process, loaded at first need."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_loaded = False
        self._chain: Chain | None = None

    @property
    def is_known_to_be_empty(self) -> bool:
        """Never loads anything, so event loops may ask."""
        return self._is_loaded and self._chain is None

    def chain(self) -> Chain | None:
        """None where nothing is left to run: the fast path. May load it, so ask in a thread."""
        with self._lock:
            if not self._is_loaded:
                paths = chosen()
                self._chain = Chain(paths) if paths else None
                self._is_loaded = True
            return self._chain

    def forget(self) -> None:
        self._is_loaded = False


loaded = Loaded()


@receiver(setting_changed)
def forget_chain(*, setting: str, **kwargs: Any) -> None:
    if setting in ("MIDDLEWARE", "MCP_DJANGO"):
        loaded.forget()
