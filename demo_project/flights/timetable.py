"""The timetable of a day as a resource. Registered by import, from `mcp.py`."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from datetime import date
from io import StringIO

from django.http import HttpRequest

import mcp_django as mcp
from demo_project.flights.models import Flight
from demo_project.flights.rights import visible

COLUMNS = ["number", "origin__iata", "destination__iata", "scheduled_departure", "gate", "status"]


def days(request: HttpRequest, value: str, given: Mapping[str, str]) -> list[date]:
    return list(visible(Flight, request).dates("scheduled_departure", "day"))


@mcp.resource(
    "flightdesk://timetable/{day}",
    title="Timetable",
    mime_type="text/csv",
    permission="flights.view_flight",
    completions={"day": days},
)
def timetable(request: HttpRequest, day: date) -> str:
    """Everything that leaves on a day (YYYY-MM-DD), in order of departure, in UTC."""
    flights = visible(Flight, request).filter(scheduled_departure__date=day)
    rows = flights.order_by("scheduled_departure", "number").values_list(*COLUMNS)
    if not rows:
        raise Flight.DoesNotExist
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(["flight", "from", "to", "departs", "gate", "status"])
    for number, origin, destination, departs, gate, status in rows:
        writer.writerow([number, origin, destination, f"{departs:%H:%M}", gate, status])
    return text.getvalue()
