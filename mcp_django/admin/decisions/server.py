"""What staff decide about the whole server, and about single users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from mcp_django.admin.decisions.base import (
    AS_IN_CODE,
    START_AGAIN,
    DecisionAdmin,
    DecisionForm,
    logged_changes,
)
from mcp_django.admin.pages import AnyModelAdmin, AnyModelForm
from mcp_django.models import ServerSettings, UserRestriction
from mcp_django.principal import DEFAULT_SERVER


def yes_or_no(value: object) -> str:
    return "yes" if value else "no"


class ServerForm(DecisionForm):
    class Meta:
        model = ServerSettings
        fields = ("instructions", "read_only", "closed")

    @staticmethod
    def find(row: ServerSettings) -> ServerSettings | None:
        return row if row.server == DEFAULT_SERVER else None

    @staticmethod
    def words(row: Any, groups: Iterable[Group]) -> dict[str, str]:
        return {
            "instructions": row.instructions or AS_IN_CODE,
            "read-only": yes_or_no(row.read_only),
            "closed": yes_or_no(row.closed),
        }


class ServerSettingsAdmin(DecisionAdmin):
    """One page: there is one server."""

    form = ServerForm
    key = "server"

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return HttpResponseRedirect(self.change_url(DEFAULT_SERVER))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets: list[Any] = [(None, {"fields": ["instructions", "read_only", "closed"]})]
        return [*fieldsets, START_AGAIN] if self.has_change_permission(request, obj) else fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ()


class RestrictionForm(AnyModelForm):
    class Meta:
        model = UserRestriction
        fields = ("user", "read_only", "blocked")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        others = UserRestriction.objects.filter(
            server=self.instance.server, user=cleaned.get("user")
        )
        # Django asks about the pair only where both are in the form.
        if others.exclude(pk=self.instance.pk).exists():
            raise ValidationError({"user": "There is a restriction of this user already."})
        return cleaned


class UserRestrictionAdmin(AnyModelAdmin):
    """Users whose assistants may change nothing, or may not come at all."""

    form = RestrictionForm
    list_display = ("user", "read_only", "blocked")
    list_filter = ("read_only", "blocked")
    list_select_related = ("user",)
    raw_id_fields = ("user",)

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return (f"user__{get_user_model().USERNAME_FIELD}",)

    def construct_change_message(
        self,
        request: HttpRequest,
        form: Any,
        formsets: Any,
        add: bool = False,  # noqa: FBT001, FBT002  Django's signature
    ) -> Any:
        row, initial = form.instance, form.initial
        after = logged_switches(row.read_only, row.blocked)
        if add:
            return "; ".join(f"{name}: {value}" for name, value in after.items())
        before = logged_switches(initial["read_only"], initial["blocked"])
        users = {"user": str(initial["user"])}, {"user": str(row.user_id)}
        return logged_changes(users[0] | before, users[1] | after) or "Nothing changed."


def logged_switches(read_only: object, blocked: object) -> dict[str, str]:
    return {"read-only": yes_or_no(read_only), "blocked": yes_or_no(blocked)}
