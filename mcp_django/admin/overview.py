"""The overview: where clients connect, one's tokens, and what was called lately."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from mcp_django.admin.figures import LAST_DAY, PERIODS, figures
from mcp_django.admin.pages import OVERVIEW, PAGES, AnyModelAdmin, url_of
from mcp_django.auth.clients import address_for_clients, client_cards
from mcp_django.auth.resource import endpoint_path
from mcp_django.exceptions import QueryError
from mcp_django.exposure.decisions import decisions
from mcp_django.exposure.limits import lift_deadlines
from mcp_django.models import CallRecord, PersonalToken


class AssistantsAdmin(AnyModelAdmin):
    """A row in the lists of the admin that leads to the pages about assistants."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return OVERVIEW.may_open(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return OVERVIEW.may_open(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

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


def calls(model_admin: Any, request: HttpRequest) -> dict[str, Any]:
    if not request.user.has_perm("mcp_django.view_callrecord"):
        return {}
    period = PERIODS.get(request.GET.get("period", ""), LAST_DAY)
    found: dict[str, Any] = {"may_see_calls": True, "period": period, "periods": PERIODS}
    if CallRecord in model_admin.admin_site._registry:
        found["calls_url"] = url_of(model_admin, "changelist", model=CallRecord)
    try:
        return {**found, "figures": figures(period=period)}
    except QueryError:
        return {**found, "is_too_slow": True}
    finally:
        lift_deadlines()
