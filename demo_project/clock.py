"""The clock of the desk. It stands at noon, UTC, of the day on which the demo was started."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, time, timedelta

from demo_project.state import read_json, write_json

#: The seed makes its rows for this day, and moves them from there.
MADE_FOR = date(2026, 11, 18)
#: How many days of flights lie before the day of the desk, and after it.
PAST, FUTURE = 16, 3
CLOCK = "clock.json"


def day_of_start() -> date:
    """Return what DEMO_TODAY says, as 2026-11-18, or the real date in UTC."""
    fixed = os.environ.get("DEMO_TODAY")
    return date.fromisoformat(fixed) if fixed else datetime.now(UTC).date()


def today() -> date:
    """Return the day for which the last seed has laid the schedule."""
    kept = read_json(CLOCK).get("today")
    return date.fromisoformat(kept) if kept else MADE_FOR


def keep_today(day: date) -> None:
    write_json(CLOCK, {"today": day.isoformat()})


def noon(day: date) -> datetime:
    return datetime.combine(day, time(12), UTC)


def ends_of_schedule(day: date) -> tuple[date, date]:
    return day - timedelta(days=PAST), day + timedelta(days=FUTURE)


def last_week() -> tuple[date, date]:
    """Return the seven days before the day of the desk: the first and the last."""
    return today() - timedelta(days=7), today() - timedelta(days=1)
