"""What staff decide about the whole server, and about single users."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpResponse, HttpResponseRedirect

from mcp_django.admin.decisions.base import DecisionAdmin, decided_words, logged_changes
from mcp_django.admin.pages import AnyModelAdmin, AnyModelForm, url_of
from mcp_django.models import UserRestriction
from mcp_django.principal import DEFAULT_SERVER


class ServerSettingsAdmin(DecisionAdmin):
    """One page: there is one server."""

    key = "server"
    things = staticmethod(lambda: {DEFAULT_SERVER: DEFAULT_SERVER})
    fieldsets = ((None, {"fields": ("instructions", "read_only", "closed", "based_on")}),)

    def changelist_view(self, request: Any, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        self.make_rows()
        return HttpResponseRedirect(url_of(self, "change", DEFAULT_SERVER))

    def line(self, row: Any) -> dict[str, str]:
        return {"about": "Everything that assistants get from this site."}


class RestrictionForm(AnyModelForm):
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
    search_fields = (f"user__{get_user_model().USERNAME_FIELD}",)
    raw_id_fields = ("user",)

    def construct_change_message(self, request: Any, form: Any, *args: Any, **kwargs: Any) -> Any:
        words = decided_words(form.instance, [])
        if not form.initial:
            return "; ".join(f"{name}: {word}" for name, word in words.items())
        before = self.model(**{**form.initial, "user": None, "user_id": form.initial["user"]})
        return logged_changes(decided_words(before, []), words) or "Nothing changed."
