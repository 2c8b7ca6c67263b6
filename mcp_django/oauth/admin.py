"""Who allowed which client what, for staff."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from mcp_django.admin.pages import AnyModelAdmin
from mcp_django.oauth.models import Authorization

CONSENT_COLUMNS = ("user", "application", "scopes", "consented_at", "last_used_at", "ended_at")
LIMITS = ("read_only", "models", "expires_at")


@admin.register(Authorization)
class AuthorizationAdmin(AnyModelAdmin):
    list_display = CONSENT_COLUMNS
    list_select_related = ["user", "application"]
    readonly_fields = (*CONSENT_COLUMNS, *LIMITS, "resource")
    actions = ["end"]

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    @admin.action(description="End access", permissions=["change"])
    def end(self, request: HttpRequest, queryset: QuerySet[Authorization]) -> None:
        for authorization in queryset:
            authorization.end()
            self.log_change(request, authorization, "Ended.")
