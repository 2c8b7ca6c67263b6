"""The overview: where clients connect, one's tokens, and what was called lately."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from mcp_django.admin.pages import OVERVIEW, url_of
from mcp_django.conf import get_config
from mcp_django.exceptions import QueryError
from mcp_django.exposure.decisions import decisions
from mcp_django.exposure.limits import lift_deadlines, limited
from mcp_django.models import CallRecord, PersonalToken
from mcp_django.transports.requests import endpoint_path, endpoint_url

#: Tokens of the person at the page.
MOST_TOKENS = 10


def overview_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Show each block only to people who may open the pages that it summarizes."""
    context: dict[str, Any] = {
        "endpoint": endpoint_url(),
        "path": endpoint_path(),
        "is_closed": decisions().closed,
    }
    if context["endpoint"]:
        context["snippets"] = snippets(context["endpoint"])
    context |= own_tokens(model_admin, request) | calls(model_admin, request)
    return OVERVIEW.render(model_admin, request, **context)


def snippets(url: str) -> list[dict[str, str]]:
    """The configuration of some clients, as each of them reads it."""
    name = re.sub(r"[^a-z0-9]+", "-", get_config().name.lower()).strip("-") or "django"
    header = "Authorization: Bearer TOKEN"
    command = f'claude mcp add --transport http {name} {url} --header "{header}"'
    server = {"type": "http", "url": url, "headers": {"Authorization": "Bearer TOKEN"}}
    files = {"VS Code: .vscode/mcp.json": "servers", "Many others": "mcpServers"}
    return [{"title": "Claude Code", "text": command}] + [
        {"title": title, "text": json.dumps({key: {name: server}}, indent=2, ensure_ascii=False)}
        for title, key in files.items()
    ]


def own_tokens(model_admin: Any, request: HttpRequest) -> dict[str, Any]:
    token_admin = model_admin.admin_site._registry.get(PersonalToken)
    if token_admin is None or not token_admin.has_view_permission(request):
        return {}
    tokens = token_admin.get_queryset(request).filter(user=request.user.pk)
    newest = tokens.order_by("-created_at", "-pk")[:MOST_TOKENS]
    found = {
        "tokens": list(newest),
        "tokens_url": url_of(model_admin, "changelist", model=PersonalToken),
    }
    if token_admin.has_add_permission(request):
        found["add_token_url"] = url_of(model_admin, "add", model=PersonalToken)
    return found


def calls(model_admin: Any, request: HttpRequest) -> dict[str, Any]:
    if not request.user.has_perm("mcp_django.view_callrecord"):
        return {}
    found: dict[str, Any] = {"may_see_calls": True}
    if CallRecord in model_admin.admin_site._registry:
        found["calls_url"] = url_of(model_admin, "changelist", model=CallRecord)
    try:
        return {**found, "figures": figures()}
    except QueryError:
        return {**found, "is_too_slow": True}
    finally:
        lift_deadlines()


# What the records of calls add up to, in a number of queries that does not depend on them.

HOURS = 24
#: Newest calls of the day that tell how long calls take.
TIMED = 1000
LAST = 10
#: In the drawing: from one bar to the next, and the height of the highest.
STEP, HEIGHT = 24, 96
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
    slowest: int
    median: int | None
    slow: int | None
    last: tuple[CallRecord, ...]

    @property
    def calls(self) -> int:
        return sum(bar.calls for bar in self.bars)

    @property
    def errors(self) -> int:
        return sum(bar.errors for bar in self.bars)

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
    newest = CallRecord.objects.order_by("-at", "-pk")
    rows = newest.filter(at__gte=starts[0], at__lt=end)
    counts: dict[str, Any] = {}
    for at, start in enumerate(starts):
        hour = Q(at__gte=start, at__lt=start + timedelta(hours=1))
        counts[f"calls_{at}"] = Count("pk", filter=hour)
        counts[f"errors_{at}"] = Count("pk", filter=hour & ~Q(outcome=DONE))
    with limited(rows.db):
        # One statement, and no function of dates: some databases know no time zones.
        counted = rows.order_by().aggregate(slowest=Max("milliseconds"), **counts)
        times = sorted(rows.values_list("milliseconds", flat=True)[:TIMED])
        last = tuple(newest.select_related("user")[:LAST])
    numbers = [(counted[f"calls_{at}"], counted[f"errors_{at}"]) for at in range(HOURS)]
    most = max(1, *(calls for calls, _ in numbers))
    bars = [
        Bar(
            start=starts[at],
            calls=calls,
            errors=errors,
            x=STEP * at,
            height=height_of(calls, most),
            error_height=height_of(errors, most),
        )
        for at, (calls, errors) in enumerate(numbers)
    ]
    return Figures(
        bars=tuple(bars),
        slowest=counted["slowest"] or 0,
        median=percentile(times, 0.5),
        slow=percentile(times, 0.95),
        last=last,
    )


def height_of(number: int, most: int) -> int:
    """The height of a bar: a single call can be seen among thousands."""
    return max(2, round(HEIGHT * number / most)) if number else 0


def percentile(times: list[int], share: float) -> int | None:
    return times[min(len(times) - 1, int(len(times) * share))] if times else None
