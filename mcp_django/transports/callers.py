"""Who calls, as a call has them: a user of its own, and no credential."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from mcp_django.principal import Principal

#: Marks a user whose permissions were asked for.
PRIMED = "_mcp_django_primed"


def own_copy(principal: Principal) -> Principal:
    """A principal may be a cached one: what a tool writes on its user ends with the call."""
    user = principal.user
    known = user.__dict__
    if PRIMED not in known:
        # All copies share the permissions that Django keeps on a user once it was asked.
        user.has_perm("")
        known[PRIMED] = True
    # Not `copy.copy`: a model instance goes through pickling there, for several times the cost.
    own = object.__new__(type(user))
    own.__dict__.update(known)
    if "_state" in known:
        state = own.__dict__["_state"] = object.__new__(type(known["_state"]))
        state.__dict__.update(known["_state"].__dict__)
    # Nor `replace`: a frozen dataclass takes its fields one by one. What was found out about the
    # principal goes along.
    caller = object.__new__(type(principal))
    caller.__dict__.update(principal.__dict__, user=own)
    return caller


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
