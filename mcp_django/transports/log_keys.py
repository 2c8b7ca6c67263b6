"""Keys of logs, each bound to what its reader may do: what a call said may wait for minutes, and
whoever has lost a right meanwhile, or comes with a weaker token, does not get it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from django.utils.crypto import constant_time_compare, salted_hmac

from mcp_django.exposure.decisions import decisions
from mcp_django.principal import Principal

SALT = "mcp_django.transports.log_keys"
#: Characters of the part that nobody can guess, and of the seal behind it.
RANDOM, SEAL = 24, 24


def new_key(principal: Principal) -> str:
    """For what this principal is about to be told. May ask the database."""
    random = secrets.token_urlsafe(18)
    return random + seal(random, principal)


def may_read(key: str, principal: Principal) -> bool:
    """Whether the principal has the rights that it had when the key was made."""
    expected = seal(key[:RANDOM], principal)
    return constant_time_compare(key[RANDOM:], expected)


def seal(random: str, principal: Principal) -> str:
    # Keyed: whoever holds the event id could find out otherwise, by guessing, what staff decided.
    sealed = salted_hmac(SALT, f"{random} {rights_of(principal)}", algorithm="sha256")
    return sealed.hexdigest()[:SEAL]


def rights_of(principal: Principal) -> str:
    """All that decides on rights and has a name. Rows are up to the site's own code."""
    found = principal.kept.get(SALT)
    if found is None:
        found = principal.kept[SALT] = repr(
            (
                in_order(principal.scopes),
                principal.restriction.read_only,
                in_order(principal.restriction.models),
                *rights_of_user(principal.user),
                *decided(principal.server),
            )
        )
    return str(found)


def rights_of_user(user: Any) -> tuple[Any, ...]:
    # Of the user's class not more is known than that it takes the place of Django's.
    flags = tuple(getattr(user, name, None) for name in ("is_active", "is_staff", "is_superuser"))
    permissions = getattr(user, "get_all_permissions", set)
    groups = getattr(user, "groups", None)
    return (
        flags,
        () if flags[-1] else in_order(permissions()),
        () if groups is None else in_order(groups.values_list("pk", flat=True)),
    )


def decided(server: str) -> tuple[Any, ...]:
    """What staff opened, and to whom."""
    found = decisions(server)
    models = [
        (label, one.level, one.fields, in_order(one.groups)) for label, one in found.models.items()
    ]
    tools = [(name, one.enabled, in_order(one.groups)) for name, one in found.tools.items()]
    return sorted(models, key=str), sorted(tools, key=str)


def in_order(some: Iterable[Any] | None) -> tuple[str, ...] | None:
    """The same text in each process, whatever order its sets have."""
    return None if some is None else tuple(sorted(map(str, some)))
