"""Live: who is connected now, and a button that ends it."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from mcp_django.admin.live_lists import PARTS, Line, Part, key_of_user, lines, listed
from mcp_django.admin.looking import LIVE, response
from mcp_django.admin.overview import url_of
from mcp_django.conf import get_config
from mcp_django.exposure.decisions import decisions
from mcp_django.models import ServerSettings, UserRestriction

logger = logging.getLogger("mcp_django")

GONE = "The store of sessions and streams cannot be reached. The log of the site says why."


def live_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Ends what was named on POST, and nothing on GET."""
    if request.method == "POST":
        end_named(request)
        return HttpResponseRedirect(request.get_full_path())
    username = request.GET.get("user", "")[:254]
    context: dict[str, Any] = {
        "username": username,
        "is_closed": decisions().closed,
        "is_alone": get_config().store == "memory",
        "switches": switches(model_admin, request),
    }
    user = key_of_user(username) if username else None
    if username and user is None:
        return response(LIVE, model_admin, request, **context, is_nobody=True)
    try:
        context["parts"] = [
            shown(part, request, user=user) for part in PARTS if part.may_view(request)
        ]
    except Exception:
        logger.exception("Sessions and streams cannot be shown.")
        context["problem"] = GONE
    return response(LIVE, model_admin, request, **context)


def shown(part: Part, request: HttpRequest, *, user: str | None) -> dict[str, Any]:
    page = listed(part, user=user, page=request.GET.get(part.name))
    found = {"part": part, "page": page, "may_end": part.may_end(request)}
    if page.has_previous():
        found["newer"] = page_url(request, part, page.previous_page_number())
    if page.has_next():
        found["older"] = page_url(request, part, page.next_page_number())
    return found


def page_url(request: HttpRequest, part: Part, number: int) -> str:
    query = request.GET.copy()
    query[part.name] = str(number)
    return f"?{query.urlencode()}"


def switches(model_admin: Any, request: HttpRequest) -> list[dict[str, str]]:
    """The pages that keep clients out, of those that this person may open."""
    registered = model_admin.admin_site._registry
    return [
        {"title": str(model._meta.verbose_name_plural), "url": url_of(model_admin, model)}
        for model in (ServerSettings, UserRestriction)
        if model in registered and registered[model].has_view_or_change_permission(request)
    ]


def end_named(request: HttpRequest) -> None:
    """End what the button stands for. Raises PermissionDenied."""
    for part in PARTS:
        key = request.POST.get(part.name)
        if key is not None:
            if not part.may_end(request):
                raise PermissionDenied
            try:
                end(request, part, key)
            except Exception:
                logger.exception("A %s cannot be ended.", part.noun)
                messages.error(request, GONE)


def end(request: HttpRequest, part: Part, key: str) -> None:
    found = [one for one in part.all() if one.key == key]
    if not found:
        messages.warning(request, f"This {part.noun} is over already.")
        return
    # Before the end: a session takes its subscriptions along.
    [line] = lines(found)
    part.end(key)
    record_end(request, part, line)
    messages.success(request, f"The {part.noun} of {line.title} was ended.")


def record_end(request: HttpRequest, part: Part, line: Line) -> None:
    LogEntry.objects.create(
        user_id=request.user.pk,  # type: ignore[misc]  # nobody anonymous comes here
        content_type_id=ContentType.objects.get_for_model(part.model).pk,
        object_id=line.key,
        object_repr=line.title[:200],
        action_flag=DELETION,
        change_message=f"Ended the {part.noun} of {line.title}.",
    )
