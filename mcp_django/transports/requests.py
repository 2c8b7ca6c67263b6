"""Django's request for a call: complete enough for middleware, tools and the admin's own code."""

from __future__ import annotations

import io
from functools import cached_property
from typing import Any

from django.conf import settings
from django.contrib.auth import get_backends
from django.contrib.auth.models import PermissionsMixin
from django.contrib.messages.storage.base import BaseStorage, Message
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.urls import set_script_prefix

from mcp_django.connections import current_tenant
from mcp_django.exposure.permissions import is_plain_backend
from mcp_django.exposure.request_attributes import EmptySession, limit_to_models
from mcp_django.principal import Principal

# Who calls, as a call has them: a user of its own, and no credential.

#: Marks a user whose permissions were read.
PRIMED = "_mcp_django_primed"


def own_copy(principal: Principal) -> Principal:
    """A principal may be a cached one: what a tool writes on its user ends with the call."""
    user = principal.user
    known = user.__dict__
    if PRIMED not in known:
        read_permissions(user)
        known[PRIMED] = True
    # Not `copy.copy`: a model instance goes through pickling there, for several times the cost.
    own = object.__new__(type(user))
    own.__dict__.update(known)
    if "_state" in known:
        state = own.__dict__["_state"] = object.__new__(type(known["_state"]))
        state.__dict__.update(known["_state"].__dict__)
    models = principal.restriction.models
    if models is not None:
        limit_to_models(own, real=user, models=models)
    # Nor `replace`: a frozen dataclass takes its fields one by one. What was found out about the
    # principal goes along.
    caller = object.__new__(type(principal))
    caller.__dict__.update(principal.__dict__, user=own)
    tenant = current_tenant()
    if tenant:
        # Counters, cursors, sessions, streams and what is remembered: of this tenant alone.
        caller.__dict__.pop("key", None)
        caller.__dict__.update(tenant=tenant, caches=principal.caches.setdefault(tenant, {}))
    return caller


def read_permissions(user: Any) -> None:
    """Read what Django caches on a user: two queries that every copy would make by itself.

    Backends of the site are not asked: their answers may depend on the tenant or on the time.
    """
    has_permissions = isinstance(user, PermissionsMixin)
    # No backend is asked about a superuser.
    if not has_permissions or user.is_superuser:
        return
    for backend in get_backends():
        if hasattr(backend, "has_perm") and is_plain_backend(type(backend)):
            backend.get_all_permissions(user)


def forget_credential(request: HttpRequest) -> None:
    """Who calls is known. Nothing that runs from here on needs the credential itself."""
    request.META.pop("HTTP_AUTHORIZATION", None)
    request.__dict__.pop("headers", None)  # a cached property, made of META
    scope = getattr(request, "scope", None)
    if scope is not None:
        pairs = [pair for pair in scope["headers"] if pair[0].lower() != b"authorization"]
        request.scope = {**scope, "headers": pairs}  # type: ignore[attr-defined]  # ASGI's


async def known(user: Any) -> Any:
    return user


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
    # Middleware may have written to the empty session that it was given.
    if not isinstance(getattr(request, "session", None), EmptySession):
        request.session = EmptySession()
    request._messages = MemoryMessages(request)  # type: ignore[attr-defined]  # the framework's
    request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]  # Django's own switch
