"""What assistants did: a list and its details, to read."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.html import format_html

from mcp_django.admin.pages import AnyModelAdmin
from mcp_django.models import CallRecord

#: Newest records that tell which values a filter offers. All of them would take long to ask.
LOOKED_AT = 2000
#: Values that a filter offers.
MOST_VALUES = 30
#: Records that are counted, and that pages lead to.
MOST_COUNTED = 10_000

if TYPE_CHECKING:
    CallPaginator = Paginator[CallRecord]
else:
    CallPaginator = Paginator  # without subscripts at run time


class CappedPaginator(CallPaginator):
    """Counts no further than anybody turns pages."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows[:MOST_COUNTED].count())


class RecentFilter(admin.SimpleListFilter):
    """Offers what the newest records have. Any other value may stand in the address."""

    #: The place of the value and of its text in what `recent` gives.
    places = (0, 0)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        value, text = self.places
        found = Counter((str(row[value]), str(row[text])) for row in recent(request) if row[value])
        return [pair for pair, _ in found.most_common(MOST_VALUES)]

    def has_output(self) -> bool:
        return bool(self.lookup_choices) or self.value() is not None

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[CallRecord]
    ) -> QuerySet[CallRecord]:
        value = self.value()
        if value is None:
            return queryset
        try:
            return queryset.filter(self.condition(value.replace("\0", "")))
        except (ValueError, ValidationError) as error:
            # Somebody wrote it into the address.
            raise IncorrectLookupParameters(error) from error

    def condition(self, value: str) -> Q:
        return Q((str(self.parameter_name), value))


class UserFilter(RecentFilter):
    title, parameter_name, places = "user", "user", (0, 1)

    def condition(self, value: str) -> Q:
        # A number that no column holds is nobody's key, which `user=` would not know.
        return Q(user__in=get_user_model()._default_manager.filter(pk=value).values("pk"))


class ClientFilter(RecentFilter):
    title, parameter_name, places = "client", "client", (2, 2)


class TargetFilter(RecentFilter):
    title, parameter_name, places = "tool, prompt or resource", "target", (3, 3)

    def condition(self, value: str) -> Q:
        # A tool with any model that it was asked about.
        return Q(target=value) | Q(target__startswith=f"{value} ")


def recent(request: HttpRequest) -> list[tuple[Any, ...]]:
    """The user, the user's name, the client and the tool of the newest records, asked once."""
    known: list[tuple[Any, ...]] | None = getattr(request, "_mcp_recent", None)
    if known is None:
        name = f"user__{get_user_model().USERNAME_FIELD}"
        rows = CallRecord.objects.values_list("user_id", name, "client", "target")[:LOOKED_AT]
        known = [
            (user, text, client, target.partition(" ")[0]) for user, text, client, target in rows
        ]
        request._mcp_recent = known  # type: ignore[attr-defined]  # ours
    return known


class CallRecordAdmin(AnyModelAdmin):
    """For those with the permission `view_callrecord`, who see the calls of everybody."""

    list_display = (
        "at",
        "who",
        "what",
        "ending",
        "client",
        "took",
    )
    list_filter = (
        ("at", admin.DateFieldListFilter),
        "kind",
        "outcome",
        UserFilter,
        ClientFilter,
        TargetFilter,
    )
    list_select_related = ("user",)
    # The table may have millions of rows: nothing sorts or counts all of them.
    sortable_by = ()
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = CappedPaginator
    actions = None
    fields = (
        "at",
        "who",
        "principal",
        "client",
        "kind",
        "method",
        "target",
        "outcome",
        "reason",
        "milliseconds",
        "rows",
        "bytes",
        "correlation_id",
        "shown_arguments",
    )

    @admin.display(description="user")
    def who(self, record: CallRecord) -> str:
        # The user may have been deleted since.
        return record.principal if record.user is None else record.user.get_username()

    @admin.display(description="what")
    def what(self, record: CallRecord) -> str:
        # Only some methods have a target.
        return record.target or record.method

    @admin.display(description="outcome")
    def ending(self, record: CallRecord) -> str:
        outcome = record.get_outcome_display()
        if not record.reason:
            return outcome
        return format_html("{}<br><small>{}</small>", outcome, record.reason)

    @admin.display(description="ms")
    def took(self, record: CallRecord) -> int:
        return record.milliseconds

    @admin.display(description="arguments")
    def shown_arguments(self, record: CallRecord) -> str:
        if record.arguments is None:
            return "not kept: AUDIT_ARGUMENTS is off"
        text = json.dumps(record.arguments, indent=2, ensure_ascii=False)
        return format_html("<pre>{}</pre>", text)

    def get_queryset(self, request: HttpRequest) -> QuerySet[CallRecord]:
        return super().get_queryset(request).select_related("user")

    def has_view_permission(self, request: HttpRequest, obj: CallRecord | None = None) -> bool:
        return request.user.has_perm("mcp_django.view_callrecord")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: CallRecord | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: CallRecord | None = None) -> bool:
        return False
