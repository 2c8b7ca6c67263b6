"""The person at a page, as a caller and as somebody who looks at other callers."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest

from mcp_django.exposure.lookers import OwnRights, own_rights
from mcp_django.exposure.permissions import Rights
from mcp_django.principal import SCOPES, Principal


def principal_with_all_scopes(user: Any) -> Principal:
    """What the user may do, with no limit that credentials have."""
    return Principal(user=user, scopes=frozenset(SCOPES), method="admin", client="admin")


def principal_of_page(request: HttpRequest) -> Principal:
    """Whoever is logged in."""
    users: Any = get_user_model()
    # Read anew, as a plain object of the model: code of the site gets it.
    return principal_with_all_scopes(users._default_manager.get(pk=request.user.pk))


def looker_of(request: HttpRequest) -> OwnRights:
    """The rights of the person at the page: the page's own request has passed the middleware."""
    return own_rights(Rights(request, principal_of_page(request)))
