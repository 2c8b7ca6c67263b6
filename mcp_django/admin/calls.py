"""What assistants did: a list and its details, to read."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import quote
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import mark_safe
from django.utils.timezone import template_localtime  # type: ignore[attr-defined]  # no stub

from mcp_django.admin.pages import ReadOnlyAdmin
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


class RecordFilter(RecentFilter):
    """The calls that wrote one record: `?record=shop.order:5`. Pages link to it."""

    title, parameter_name = "record", "record"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        value = self.value()
        return [] if value is None else [(value, value)]

    def condition(self, value: str) -> Q:
        label, _, key = value.partition(":")
        return Q(model=label, keys__contains=json.dumps(key))


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


def csv_rows(records: QuerySet[CallRecord]) -> Iterator[list[str]]:
    """Yield a heading, and a row for each of the newest records."""
    names = [field.name for field in CallRecord._meta.concrete_fields]
    yield names
    for values in records.order_by("-at", "-pk").values_list(*names)[:MOST_COUNTED]:
        texts = (json.dumps(value) if isinstance(value, dict) else value for value in values)
        cells = ["" if text is None else str(text) for text in texts]
        # Spreadsheets run what begins so as a formula, and clients choose their names.
        yield [f"'{cell}" if cell[:1] in {*"=+-@\t\r"} else cell for cell in cells]


class CallRecordAdmin(ReadOnlyAdmin):
    """For those with the permission `view_callrecord`, who see the calls of everybody."""

    list_display = ("when", "who", "what", "ending", "client", "milliseconds")
    list_filter = (
        ("at", admin.DateFieldListFilter),
        "kind",
        "outcome",
        UserFilter,
        ClientFilter,
        TargetFilter,
        RecordFilter,
    )
    search_fields = ("=correlation_id", "principal", "client", "target")
    list_select_related = ("user",)
    search_help_text = "A user, a client, a tool, a model, or the whole ID of a call."
    # The table may have millions of rows: nothing sorts or counts all of them.
    sortable_by = ()
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = CappedPaginator
    actions = ("export_csv",)
    fields = (
        *("at", "who", "principal", "client", "kind", "method", "target", "outcome", "reason"),
        *("written", "milliseconds", "rows", "bytes", "correlation_id", "shown_arguments"),
    )

    @admin.action(description="Export selected calls as CSV", permissions=["view"])
    def export_csv(self, request: HttpRequest, queryset: QuerySet[CallRecord]) -> HttpResponse:
        headers = {"Content-Disposition": 'attachment; filename="calls.csv"'}
        response = HttpResponse(content_type="text/csv; charset=utf-8", headers=headers)
        csv.writer(response).writerows(csv_rows(queryset))
        return response

    @admin.display(description="when")
    def when(self, record: CallRecord) -> str:
        return date_format(template_localtime(record.at), "Y-m-d H:i:s")

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

    @admin.display(description="records written")
    def written(self, record: CallRecord) -> str:
        """Return the keys of the records with links: to the record, and to all calls like this."""
        calls = reverse(f"{self.admin_site.name}:mcp_django_callrecord_changelist")
        lines = []
        for key in json.loads(record.keys or "[]"):
            query = urlencode({"record": f"{record.model}:{key}"})
            its_calls = format_html('<a href="{}?{}">its calls</a>', calls, query)
            lines.append((self.link_to(record.model, key), its_calls))
        return format_html_join(mark_safe("<br>"), "{} ({})", lines)

    def link_to(self, label: str, key: str) -> str:
        """Return a link to a record, or its key where this site has no page of it."""
        name = f"{self.admin_site.name}:{label.replace('.', '_')}_change"
        try:
            return format_html('<a href="{}">{}</a>', reverse(name, args=[quote(key)]), key)
        except NoReverseMatch:
            return key

    @admin.display(description="arguments")
    def shown_arguments(self, record: CallRecord) -> str:
        if record.arguments is None:
            return "not kept: AUDIT_ARGUMENTS is off"
        text = json.dumps(record.arguments, indent=2, ensure_ascii=False)
        return format_html("<pre>{}</pre>", text)

    def has_view_permission(self, request: HttpRequest, obj: CallRecord | None = None) -> bool:
        return request.user.has_perm("mcp_django.view_callrecord")
