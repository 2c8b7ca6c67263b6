"""What the records of calls add up to, in a number of queries that does not depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from django.contrib.auth import get_user_model
from django.db.models import Avg, Count, F, Max, Q, QuerySet, Sum
from django.utils import timezone

from mcp_django.admin.inspect.cost import CHARACTERS_IN_TOKEN
from mcp_django.exposure.limits import limited
from mcp_django.models import CallRecord

#: Newest calls of the period that tell how long calls take.
TIMED = 1000
LAST = 10
#: Lines of each list of what was called most.
TOP = 5
#: A question, and a person who says no, are no errors.
NO_ERRORS = ["done", "asked", "refused"]


@dataclass(frozen=True, kw_only=True)
class Period:
    name: str
    title: str
    length: timedelta


LAST_DAY = Period(name="day", title="last 24 hours", length=timedelta(days=1))
LAST_WEEK = Period(name="week", title="last 7 days", length=timedelta(days=7))
PERIODS = {period.name: period for period in (LAST_DAY, LAST_WEEK)}


@dataclass(frozen=True, kw_only=True)
class Top:
    """What was called most, by some property of calls."""

    name: str
    calls: int
    errors: int
    milliseconds: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Figures:
    period: Period
    calls: int
    errors: int
    bytes: int
    slowest: int
    median: int | None
    slow: int | None
    last: tuple[CallRecord, ...]
    #: The heading of each list, and its lines.
    tops: tuple[tuple[str, tuple[Top, ...]], ...]

    @property
    def tokens(self) -> int:
        return ceil(self.bytes / CHARACTERS_IN_TOKEN)

    @property
    def error_percent(self) -> str:
        return f"{100 * self.errors / self.calls:.1f}" if self.calls else "0"


def figures(*, period: Period = LAST_DAY, now: datetime | None = None) -> Figures:
    """Raises QueryError where the database would take too long."""
    newest = CallRecord.objects.order_by("-at", "-pk")
    rows = newest.filter(at__gt=(now or timezone.now()) - period.length)
    user = f"user__{get_user_model().USERNAME_FIELD}"
    with limited(rows.db):
        summed = rows.order_by().aggregate(
            calls=Count("pk"),
            errors=Count("pk", filter=~Q(outcome__in=NO_ERRORS)),
            bytes=Sum("bytes"),
            slowest=Max("milliseconds"),
        )
        times = list(rows.values_list("milliseconds", flat=True)[:TIMED])
        last = tuple(newest.select_related("user")[:LAST])
        tops = (
            ("Tools", top(rows.filter(method="tools/call"), "target", unnamed="unnamed")),
            ("Users", top(rows, user, unnamed="anonymous or deleted")),
            ("Clients", top(rows, "client", unnamed="unnamed")),
        )
    return Figures(
        period=period,
        calls=summed["calls"],
        errors=summed["errors"],
        bytes=summed["bytes"] or 0,
        slowest=summed["slowest"] or 0,
        median=percentile(times, 0.5),
        slow=percentile(times, 0.95),
        last=last,
        tops=tops,
    )


def top(rows: QuerySet[CallRecord], by: str, *, unnamed: str) -> tuple[Top, ...]:
    grouped = (
        rows.order_by()
        .values(name=F(by))
        .annotate(
            calls=Count("pk"),
            errors=Count("pk", filter=~Q(outcome__in=NO_ERRORS)),
            took=Avg("milliseconds"),
            size=Sum("bytes"),
        )
        .order_by("-calls", F("name").asc(nulls_first=True))[:TOP]
    )
    return tuple(
        Top(
            name=str(line["name"] or unnamed),
            calls=line["calls"],
            errors=line["errors"],
            milliseconds=round(line["took"] or 0),
            bytes=line["size"] or 0,
        )
        for line in grouped
    )


def percentile(times: list[int], share: float) -> int | None:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None
