"""Who may reach a function of the site, be it a tool, a resource or a prompt."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mcp_django.exposure.function_checks import Permission

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights

logger = logging.getLogger("mcp_django")


def may_reach(rights: Rights, permission: Permission | None, *, name: str) -> bool:
    """Whether the permission lets this caller in. None: every active member of the staff."""
    return is_within(rights, permission) and is_permitted(rights, permission, name=name)


def is_within(rights: Rights, permission: Permission | None) -> bool:
    """Whether a credential that is held to some models reaches a function at all.

    Only the permission says what a function is about. Without one that names an allowed model it
    may touch anything, so it does not exist for such a credential.
    """
    restriction = rights.principal.restriction
    if restriction.models is None:
        return True
    if not isinstance(permission, str):
        return False
    app, _, codename = permission.partition(".")
    _, _, model = codename.partition("_")
    return restriction.allows_model(f"{app}.{model}".lower())


def is_permitted(rights: Rights, permission: Permission | None, *, name: str) -> bool:
    user = rights.request.user
    if callable(permission):
        try:
            return bool(permission(rights.request))
        except Exception:
            # Code of the site: this function is not there, and all the others are.
            logger.exception("The permission of %s failed.", name)
            return False
    if permission is not None:
        return user.has_perm(permission)
    return user.is_active and user.is_staff
