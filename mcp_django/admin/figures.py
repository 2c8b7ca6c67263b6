"""What the records of calls add up to, in a number of queries that does not depend on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Avg, Count, F, Max, Q, QuerySet, Sum
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.formats import date_format

from mcp_django.admin.inspect.cost import CHARACTERS_IN_TOKEN
from mcp_django.exposure.limits import limited
from mcp_django.models import CallRecord

#: Newest calls of the period that tell how long calls take.
TIMED = 1000
LAST = 10
#: Lines of each list of what was called most.
TOP = 5
DONE = CallRecord.Outcome.DONE


@dataclass(frozen=True, kw_only=True)
class Period:
    name: str
    title: str
    #: Of one bar.
    step: timedelta
    count: int
    #: A format of Django for the beginning of a bar.
    label: str


LAST_DAY = Period(
    name="day", title="last 24 hours", step=timedelta(hours=1), count=24, label="M j, H:i"
)
LAST_WEEK = Period(
    name="week", title="last 7 days", step=timedelta(days=1), count=7, label="D, M j, H:i"
)
PERIODS = {period.name: period for period in (LAST_DAY, LAST_WEEK)}


# The numbers


@dataclass(frozen=True, kw_only=True)
class Bar:
    """The calls of one step of the period."""

    start: datetime
    calls: int
    errors: int
    bytes: int
    #: Milliseconds, where calls of this step are among the newest.
    median: int | None
    slow: int | None


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
    bars: tuple[Bar, ...]
    slowest: int
    median: int | None
    slow: int | None
    last: tuple[CallRecord, ...]
    #: The heading of each list, and its lines.
    tops: tuple[tuple[str, tuple[Top, ...]], ...]

    @property
    def calls(self) -> int:
        return sum(bar.calls for bar in self.bars)

    @property
    def errors(self) -> int:
        return sum(bar.errors for bar in self.bars)

    @property
    def bytes(self) -> int:
        return sum(bar.bytes for bar in self.bars)

    @property
    def tokens(self) -> int:
        return tokens_of(self.bytes)

    @property
    def error_percent(self) -> str:
        return f"{100 * self.errors / self.calls:.1f}" if self.calls else "0"

    @property
    def charts(self) -> list[Chart]:
        return charts(self)


def figures(*, period: Period = LAST_DAY, now: datetime | None = None) -> Figures:
    """Raises QueryError where the database would take too long."""
    end = (now or timezone.now()).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    starts = [end - period.step * (period.count - at) for at in range(period.count)]
    newest = CallRecord.objects.order_by("-at", "-pk")
    rows = newest.filter(at__gte=starts[0], at__lt=end)
    sums: dict[str, Any] = {}
    for at, start in enumerate(starts):
        inside = Q(at__gte=start, at__lt=start + period.step)
        sums[f"calls_{at}"] = Count("pk", filter=inside)
        sums[f"errors_{at}"] = Count("pk", filter=inside & ~Q(outcome=DONE))
        sums[f"bytes_{at}"] = Sum("bytes", filter=inside)
    user = f"user__{get_user_model().USERNAME_FIELD}"
    with limited(rows.db):
        # One statement, and no function of dates: some databases know no time zones.
        summed = rows.order_by().aggregate(slowest=Max("milliseconds"), **sums)
        timed = list(rows.values_list("at", "milliseconds")[:TIMED])
        last = tuple(newest.select_related("user")[:LAST])
        tops = (
            ("Tools", top(rows.filter(method="tools/call"), "target", unnamed="unnamed")),
            ("Users", top(rows, user, unnamed="anonymous or deleted")),
            ("Clients", top(rows, "client", unnamed="unnamed")),
        )
    return Figures(
        period=period,
        bars=tuple(bar_of(at, start, period, summed, timed) for at, start in enumerate(starts)),
        slowest=summed["slowest"] or 0,
        median=percentile([took for _, took in timed], 0.5),
        slow=percentile([took for _, took in timed], 0.95),
        last=last,
        tops=tops,
    )


def bar_of(
    at: int,
    start: datetime,
    period: Period,
    summed: dict[str, Any],
    timed: Sequence[tuple[datetime, int]],
) -> Bar:
    times = [took for when, took in timed if start <= when < start + period.step]
    return Bar(
        start=start,
        calls=summed[f"calls_{at}"],
        errors=summed[f"errors_{at}"],
        bytes=summed[f"bytes_{at}"] or 0,
        median=percentile(times, 0.5),
        slow=percentile(times, 0.95),
    )


def top(rows: QuerySet[CallRecord], by: str, *, unnamed: str) -> tuple[Top, ...]:
    grouped = (
        rows.order_by()
        .values(name=F(by))
        .annotate(
            calls=Count("pk"),
            errors=Count("pk", filter=~Q(outcome=DONE)),
            took=Avg("milliseconds"),
            size=Sum("bytes"),
        )
        .order_by("-calls", "name")[:TOP]
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


# The drawings

#: Of a drawing, and the height of the highest bar in it.
CHART_WIDTH, HEIGHT = 576, 96


@dataclass(frozen=True, kw_only=True)
class Rectangle:
    x: float
    y: int
    width: float
    height: int
    #: The class of its look. No look differs by its color alone.
    look: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One drawing, and the same numbers as a table."""

    name: str
    title: str
    #: What somebody reads who does not see the drawing.
    description: str
    rectangles: tuple[Rectangle, ...]
    #: What the looks mean: the class, and the name of the series.
    series: tuple[tuple[str, str], ...]
    #: The names of the numbers in `rows`.
    columns: tuple[str, ...]
    #: The number that the highest bar stands for.
    most: str
    first: str
    final: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    width, height = CHART_WIDTH, HEIGHT


#: A name for people, the class of its look, and what it shows of a bar. Without a look it is only
#: among the numbers.
Series = tuple[str, str, Callable[[Bar], "int | None"]]


def charts(found: Figures) -> list[Chart]:
    total = f"{found.calls} in total, {found.errors} of them errors"
    return [
        chart(
            found,
            name="calls",
            title="Calls",
            about=total,
            series=[
                ("Calls", "mcp-solid", lambda bar: bar.calls),
                ("Errors", "mcp-hatched", lambda bar: bar.errors),
            ],
        ),
        chart(
            found,
            name="times",
            title="Milliseconds",
            about=f"of the newest {TIMED} calls",
            series=[
                ("95th percentile", "mcp-outlined", lambda bar: bar.slow),
                ("Median", "mcp-solid", lambda bar: bar.median),
            ],
        ),
        chart(
            found,
            name="bytes",
            title="Bytes of answers",
            about=f"{filesizeformat(found.bytes)} in total",
            series=[
                ("Bytes", "mcp-solid", lambda bar: bar.bytes),
                ("Tokens, about", "", lambda bar: tokens_of(bar.bytes)),
            ],
            shown=filesizeformat,
        ),
    ]


def tokens_of(size: int) -> int:
    """An estimate, as if each byte of the answers were a character."""
    return ceil(size / CHARACTERS_IN_TOKEN)


def chart(
    found: Figures,
    *,
    name: str,
    title: str,
    about: str,
    series: Sequence[Series],
    shown: Callable[[int], str] = str,
) -> Chart:
    drawn = [one for one in series if one[1]]
    most = max(1, *(value(bar) or 0 for bar in found.bars for _, _, value in drawn))
    step = CHART_WIDTH / len(found.bars)
    rectangles = [
        Rectangle(
            x=round(step * at, 1),
            y=HEIGHT - height_of(value(bar) or 0, most),
            width=round(step * 0.8, 1),
            height=height_of(value(bar) or 0, most),
            look=look,
        )
        for _, look, value in drawn
        for at, bar in enumerate(found.bars)
        if value(bar)
    ]
    labels = [label_of_bar(bar, found.period) for bar in found.bars]
    return Chart(
        name=name,
        title=title,
        description=(
            f"{title} of the {found.period.title}, {about}; at most {shown(most)} in one bar."
        ),
        rectangles=tuple(rectangles),
        series=tuple((look, text) for text, look, _ in drawn),
        columns=tuple(text for text, _, _ in series),
        most=shown(most),
        first=labels[0],
        final=labels[-1],
        rows=tuple(
            (label, tuple(number(value(bar)) for _, _, value in series))
            for label, bar in zip(labels, found.bars, strict=True)
        ),
    )


def label_of_bar(bar: Bar, period: Period) -> str:
    start = timezone.localtime(bar.start) if timezone.is_aware(bar.start) else bar.start
    return date_format(start, period.label)


def number(value: int | None) -> str:
    return "-" if value is None else str(value)


def height_of(number: int, most: int) -> int:
    """The height of a bar: a single call can be seen among thousands."""
    return max(2, round(HEIGHT * number / most)) if number else 0
