"""What another person would get: the same code as for a call, with that person's rights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from mcp_django.auth.users import is_active
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.budget import lift_deadlines
from mcp_django.exposure.permissions import Rights
from mcp_django.principal import READ, Principal
from mcp_django.protocol.revisions import MODERN
from mcp_django.transports.middleware import loaded
from mcp_django.transports.requests import furnish

Found = TypeVar("Found")

#: Of the page's request. Nothing that identifies the person who looks.
KEPT = ("HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR", "wsgi.url_scheme")


def people(model_admin: Any, request: HttpRequest) -> QuerySet[Any]:
    """Whom the looker sees in the user admin of the same site. Without one: nobody."""
    users = get_user_model()
    user_admin = model_admin.admin_site._registry.get(users)
    if user_admin is None or not user_admin.has_view_permission(request):
        return users._default_manager.none()
    found: QuerySet[Any] = user_admin.get_queryset(request)
    return found


def find_person(model_admin: Any, request: HttpRequest, username: str) -> Any:
    """The user of this name. Raises ToolError for one whom the looker may not act as."""
    me: Any = request.user
    if username in ("", me.get_username()):
        return me
    person = visible_person(model_admin, request, username)
    if person is None:
        raise ToolError(f"There is no user {ascii(username)[:80]} whom you may see.")
    if not is_active(person):
        raise ToolError(f"{person.get_username()} is not active and gets nothing.")
    if may_more_than(person, me):
        raise ToolError(
            f"{person.get_username()} has permissions that you have not, so that you may not "
            "see what that person sees."
        )
    return person


def visible_person(model_admin: Any, request: HttpRequest, username: str) -> Any:
    """The user of this name, or None: there is none, or none that the looker may see."""
    users = get_user_model()
    seen = people(model_admin, request).filter(**{users.USERNAME_FIELD: username}).first()
    if seen is None or not user_may_be_seen(model_admin, request, seen):
        return None
    # A plain object of the model: code of the site gets the one that calls get.
    return users._default_manager.get(pk=seen.pk)


def user_may_be_seen(model_admin: Any, request: HttpRequest, person: Any) -> bool:
    user_admin = model_admin.admin_site._registry[get_user_model()]
    return bool(user_admin.has_view_permission(request, person))


def may_more_than(person: Any, looker: Any) -> bool:
    if getattr(looker, "is_superuser", False):
        return False
    if getattr(person, "is_superuser", False):
        return True
    return not person.get_all_permissions() <= looker.get_all_permissions()


def reader(person: Any) -> Principal:
    """The user with a credential that is good for reading."""
    return Principal(user=person, scopes=frozenset({READ}), method="admin")


def call_as(
    principal: Principal, request: HttpRequest, work: Callable[[CallContext, Rights], Found]
) -> Found:
    """What the work returns or raises, in a call by that principal through the site's middleware.

    Raises ToolError where middleware answers in its place.
    """
    made = request_of(principal.user, request)
    outcomes: list[Callable[[], Found]] = []

    def innermost(inner: HttpRequest) -> HttpResponseBase:
        inner.user = principal.user
        outcomes.append(attempt(work, inner, replace(principal, kept={})))
        return HttpResponse()

    chain = loaded.chain()
    try:
        # The response is not closed: that would close the connection of the page's own request.
        _ = innermost(made) if chain is None else chain(made, innermost, view=innermost)
    finally:
        lift_deadlines()
    if not outcomes:
        raise ToolError("Middleware of this site answers in place of the call.")
    return outcomes[0]()


def attempt(
    work: Callable[[CallContext, Rights], Found], request: HttpRequest, principal: Principal
) -> Callable[[], Found]:
    """Middleware must not see what the work raises: it would make a page of it."""
    context = CallContext(request=request, principal=principal, revision=MODERN[-1])
    try:
        found = work(context, Rights(request, principal))
    except Exception as error:  # raised again outside
        raised = error

        def fail() -> Found:
            raise raised

        return fail
    return lambda: found


def request_of(person: Any, request: HttpRequest) -> HttpRequest:
    """A request of nobody's browser. What the looker's own request carries stays out of it."""
    made = HttpRequest()
    made.method = "POST"
    made.path = made.path_info = request.path
    made.META = {name: request.META[name] for name in KEPT if name in request.META}
    made._body = b""  # there are no bytes to read
    made.user = person
    furnish(made)
    return made
