"""The overview: where clients connect, one's tokens, and what was called lately."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Avg, Count, F, Max, Q, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from mcp_django.admin.inspect.cost import CHARACTERS_IN_TOKEN
from mcp_django.admin.pages import OVERVIEW, PAGES, ReadOnlyAdmin, url_of
from mcp_django.auth.clients import address_for_clients, client_cards
from mcp_django.auth.resource import endpoint_path
from mcp_django.exceptions import QueryError
from mcp_django.exposure.decisions import decisions
from mcp_django.exposure.limits import limited
from mcp_django.models import CallRecord, PersonalToken


class AssistantsAdmin(ReadOnlyAdmin):
    """A row in the lists of the admin that leads to the pages about assistants."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return OVERVIEW.may_open(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return OVERVIEW.may_open(request)

    def get_urls(self) -> list[URLPattern]:
        # Nothing else: there are no records, and there is no table.
        view = self.admin_site.admin_view(self.changelist_view)
        return [
            path("", view, name="mcp_django_assistants_changelist"),
            *(page.route(self) for page in PAGES),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        address = reverse("admin:mcp_django_overview", current_app=self.admin_site.name)
        return HttpResponseRedirect(address)


#: Tokens of the person at the page.
MOST_TOKENS = 10


def overview_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Show each block only to people who may open the pages that it summarizes."""
    context: dict[str, Any] = {
        "endpoint": address_for_clients(request),
        "path": endpoint_path(),
        "is_closed": decisions().closed,
    }
    if context["endpoint"]:
        context["cards"] = client_cards(context["endpoint"])
    context |= own_tokens(model_admin, request) | calls(model_admin, request)
    return OVERVIEW.render(model_admin, request, **context)


def own_tokens(model_admin: Any, request: HttpRequest) -> dict[str, Any]:
    token_admin = model_admin.admin_site._registry.get(PersonalToken)
    if token_admin is None or not token_admin.has_view_permission(request):
        return {}
    tokens = token_admin.get_queryset(request).filter(user=request.user.pk)
    newest = tokens.order_by("-created_at", "-pk")[:MOST_TOKENS]
    may_add = token_admin.has_add_permission(request)
    return {
        "tokens": list(newest),
        "tokens_url": url_of(model_admin, "changelist", model=PersonalToken),
        "add_token_url": url_of(model_admin, "add", model=PersonalToken) if may_add else "",
    }


# What the records of calls add up to, in a number of queries that does not depend on them.

#: How far back, by what stands in the address.
PERIODS = {
    "day": ("last 24 hours", timedelta(days=1)),
    "week": ("last 7 days", timedelta(days=7)),
}
#: Newest calls of the period that tell how long calls take.
TIMED = 1000
LAST = 10
#: Lines of each list of what was called most.
TOP = 5
#: A question, and a person who says no, are no errors.
NO_ERRORS = ["done", "asked", "refused"]
TOTALS = {
    "calls": Count("pk"),
    "errors": Count("pk", filter=~Q(outcome__in=NO_ERRORS)),
    "size": Sum("bytes", default=0),
}


def calls(model_admin: Any, request: HttpRequest) -> dict[str, Any]:
    if not request.user.has_perm("mcp_django.view_callrecord"):
        return {}
    asked = request.GET.get("period")
    period = asked if asked in PERIODS else "day"
    title, length = PERIODS[period]
    context: dict[str, Any] = {
        "may_see_calls": True,
        "period": period,
        "period_title": title,
        "periods": [(name, title) for name, (title, _) in PERIODS.items()],
    }
    if CallRecord in model_admin.admin_site._registry:
        context["calls_url"] = url_of(model_admin, "changelist", model=CallRecord)
    try:
        return {**context, "figures": figures(since=timezone.now() - length)}
    except QueryError:
        return {**context, "is_too_slow": True}


def figures(*, since: datetime) -> dict[str, Any]:
    """Return what the template shows. Raises QueryError where the database would take too long."""
    newest = CallRecord.objects.order_by("-at", "-pk")
    rows = newest.filter(at__gt=since)
    user = f"user__{get_user_model().USERNAME_FIELD}"
    with limited(rows.db):
        summed = rows.order_by().aggregate(**TOTALS, slowest=Max("milliseconds", default=0))
        times = sorted(rows.values_list("milliseconds", flat=True)[:TIMED])
        return {
            **summed,
            "tokens": ceil(summed["size"] / CHARACTERS_IN_TOKEN),
            "error_percent": f"{100 * summed['errors'] / max(summed['calls'], 1):.1f}",
            "median": percentile(times, 0.5),
            "slow": percentile(times, 0.95),
            "last": list(newest.select_related("user")[:LAST]),
            "tops": [
                ("Tools", "unnamed", most_called(rows.filter(method="tools/call"), "target")),
                ("Users", "anonymous or deleted", most_called(rows, user)),
                ("Clients", "unnamed", most_called(rows, "client")),
            ],
        }


def most_called(rows: Any, by: str) -> list[dict[str, Any]]:
    grouped = rows.order_by().values(name=F(by)).annotate(**TOTALS, took=Avg("milliseconds"))
    return list(grouped.order_by("-calls", F("name").asc(nulls_first=True))[:TOP])


def percentile(ordered: list[int], share: float) -> int | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None
