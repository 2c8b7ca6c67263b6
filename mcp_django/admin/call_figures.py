"""What the records of calls add up to, in a number of queries that does not depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone

from mcp_django.exposure.budget import limited
from mcp_django.models import CallRecord

HOURS = 24
#: Newest calls of the day that tell how long calls take.
TIMED = 1000
LAST = 10
#: The drawing: of one bar its place and height, of all the height.
STEP, WIDTH, HEIGHT = 24, 20, 96
DONE = CallRecord.Outcome.DONE


@dataclass(frozen=True, kw_only=True)
class Bar:
    """The calls of one hour, and where they are drawn."""

    start: datetime
    calls: int
    errors: int
    x: int
    height: int
    error_height: int

    @property
    def y(self) -> int:
        return HEIGHT - self.height

    @property
    def error_y(self) -> int:
        return HEIGHT - self.error_height


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The last 24 hours."""

    bars: tuple[Bar, ...]
    calls: int
    errors: int
    slowest: int
    median: int | None
    slow: int | None
    last: tuple[CallRecord, ...]

    @property
    def error_percent(self) -> str:
        return f"{100 * self.errors / self.calls:.1f}" if self.calls else "0"

    @property
    def most(self) -> int:
        return max(bar.calls for bar in self.bars)

    width, height = STEP * HOURS, HEIGHT


def figures(*, now: datetime | None = None) -> Figures:
    """Raises QueryError where the database would take too long."""
    end = (now or timezone.now()).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    starts = [end - timedelta(hours=HOURS - at) for at in range(HOURS)]
    rows = CallRecord.objects.filter(at__gte=starts[0], at__lt=end)
    with limited(rows.db):
        # One statement, and no function of dates: some databases know no time zones.
        counted = rows.aggregate(slowest=Max("milliseconds"), **counts(starts))
        times = sorted(newest(rows).values_list("milliseconds", flat=True)[:TIMED])
        last = tuple(newest(CallRecord.objects.select_related("user"))[:LAST])
    return Figures(
        bars=bars(starts, counted),
        calls=sum(counted[f"calls_{at}"] for at in range(HOURS)),
        errors=sum(counted[f"errors_{at}"] for at in range(HOURS)),
        slowest=counted["slowest"] or 0,
        median=part(times, 0.5),
        slow=part(times, 0.95),
        last=last,
    )


def newest(rows: QuerySet[CallRecord]) -> QuerySet[CallRecord]:
    return rows.order_by("-at", "-pk")


def counts(starts: list[datetime]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for at, start in enumerate(starts):
        hour = Q(at__gte=start, at__lt=start + timedelta(hours=1))
        found[f"calls_{at}"] = Count("pk", filter=hour)
        found[f"errors_{at}"] = Count("pk", filter=hour & ~Q(outcome=DONE))
    return found


def bars(starts: list[datetime], counted: dict[str, int]) -> tuple[Bar, ...]:
    most = max(1, *(counted[f"calls_{at}"] for at in range(HOURS)))
    return tuple(
        Bar(
            start=start,
            calls=counted[f"calls_{at}"],
            errors=counted[f"errors_{at}"],
            x=STEP * at,
            height=height_of(counted[f"calls_{at}"], most),
            error_height=height_of(counted[f"errors_{at}"], most),
        )
        for at, start in enumerate(starts)
    )


def height_of(number: int, most: int) -> int:
    """Whatever happened can be seen."""
    return max(2, round(HEIGHT * number / most)) if number else 0


def part(times: list[int], share: float) -> int | None:
    return times[min(len(times) - 1, int(len(times) * share))] if times else None
