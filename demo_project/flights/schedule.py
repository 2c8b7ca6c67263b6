"""Questions about the schedule. Everything starts from the rows that the user may see."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise

from django.contrib import admin
from django.db.models import Avg, Count, Q, QuerySet
from django.http import HttpRequest

from demo_project import clock
from demo_project.flights.geography import great_circle_km
from demo_project.flights.models import Airport, Flight
from demo_project.flights.models.traffic import LONGEST_DELAY
from demo_project.flights.rights import visible
from mcp_django import ToolError

#: A departure counts as punctual up to here, as in the statistics of airports.
PUNCTUAL_MINUTES = 15
#: A gate is taken from this long before a departure.
GATE_MINUTES = 30
LONGEST_PERIOD = 31
MOST_CONFLICTS = 50


@dataclass(frozen=True, kw_only=True)
class Performance:
    airline: str
    flights: int
    cancelled: int
    on_time_percent: float
    average_delay_minutes: float


@dataclass(frozen=True, kw_only=True)
class PerformanceReport:
    since: date
    until: date
    airlines: list[Performance]


@dataclass(frozen=True, kw_only=True)
class Distance:
    origin: str
    destination: str
    kilometres: int
    nautical_miles: int


@dataclass(frozen=True, kw_only=True)
class Conflict:
    airport: str
    gate: str
    first: str
    second: str
    minutes_apart: int


@dataclass(kw_only=True)
class ScheduleReport:
    """The first conflicts, and how many there are in all."""

    flights: int = 0
    conflict_count: int = 0
    conflicts: list[Conflict] = field(default_factory=list)

    def add(self, flights: list[Flight]) -> None:
        found = conflicts(flights)
        self.flights += len(flights)
        self.conflict_count += len(found)
        self.conflicts += found[: MOST_CONFLICTS - len(self.conflicts)]


def performance(request: HttpRequest, since: date, until: date) -> PerformanceReport:
    check_period(since, until)
    left = Q(status__in=[Flight.Status.DEPARTED, Flight.Status.LANDED, Flight.Status.DIVERTED])
    rows = (
        visible(Flight, request)
        .filter(scheduled_departure__date__range=(since, until))
        .order_by("airline__name")
        .values("airline__name")
        .annotate(
            flights=Count("pk", filter=left),
            cancelled=Count("pk", filter=Q(status=Flight.Status.CANCELLED)),
            on_time=Count("pk", filter=left & Q(delay_minutes__lte=PUNCTUAL_MINUTES)),
            average=Avg("delay_minutes", filter=left),
        )
    )
    airlines = [
        Performance(
            airline=row["airline__name"],
            flights=row["flights"],
            cancelled=row["cancelled"],
            on_time_percent=round(100 * row["on_time"] / row["flights"], 1),
            average_delay_minutes=round(row["average"], 1),
        )
        for row in rows
        if row["flights"]
    ]
    airlines.sort(key=lambda one: -one.on_time_percent)
    return PerformanceReport(since=since, until=until, airlines=airlines)


def check_period(since: date, until: date) -> None:
    if until < since or (until - since).days >= LONGEST_PERIOD:
        raise ToolError(
            f"Choose a period of 1 to {LONGEST_PERIOD} days, with since before until: "
            "for example since {} until {}.".format(*clock.last_week())
        )


def days(since: date, until: date) -> list[date]:
    check_period(since, until)
    return [since + timedelta(days=day) for day in range((until - since).days + 1)]


def flights_of_day(request: HttpRequest, day: date) -> list[Flight]:
    return list(
        visible(Flight, request)
        .filter(scheduled_departure__date=day)
        .exclude(status=Flight.Status.CANCELLED)
        .select_related("origin")
        .order_by("origin__iata", "gate", "scheduled_departure")
    )


def conflicts(flights: list[Flight]) -> list[Conflict]:
    """Pairs that leave from one gate within half an hour, delays counted."""
    flights = sorted(flights, key=lambda one: (one.origin.iata, one.gate, one.expected_departure))
    found = []
    for first, second in pairwise(flights):
        apart = second.expected_departure - first.expected_departure
        same_gate = (first.origin_id, first.gate) == (second.origin_id, second.gate)
        if same_gate and apart < timedelta(minutes=GATE_MINUTES):
            found.append(
                Conflict(
                    airport=first.origin.iata,
                    gate=first.gate,
                    first=str(first),
                    second=str(second),
                    minutes_apart=apart // timedelta(minutes=1),
                )
            )
    return found


def find_airport(request: HttpRequest, iata: str) -> Airport:
    code = iata.strip().upper()
    airport = visible(Airport, request).filter(iata=code).exclude(iata="").first()
    if airport is None:
        raise ToolError(
            f"There is no airport with the IATA code {ascii(code)[:20]}. Look it up: call "
            'find_records with {"model": "flights.airport", "search": "Frankfurt"}.'
        )
    return airport


def departing_airports(request: HttpRequest) -> QuerySet[Airport]:
    """Airports where a flight leaves that the user may see."""
    origins = visible(Flight, request).values("origin")
    return visible(Airport, request).filter(pk__in=origins).order_by("iata")


def departures(request: HttpRequest, airport: Airport, day: date) -> list[Flight]:
    """What leaves an airport on a day, as far as the user may see it, in order."""
    flights = visible(Flight, request).filter(origin=airport, scheduled_departure__date=day)
    return list(flights.select_related("destination").order_by("scheduled_departure", "number"))


def distance(start: Airport, end: Airport) -> Distance:
    km = great_circle_km((start.latitude, start.longitude), (end.latitude, end.longitude))
    return Distance(
        origin=str(start),
        destination=str(end),
        kilometres=round(km),
        nautical_miles=round(km / 1.852),
    )


def find_flight(request: HttpRequest, number: str, day: date) -> Flight:
    number = number.strip().upper().replace(" ", "")
    flights = visible(Flight, request).select_for_update().filter(number=number)
    flight = flights.filter(scheduled_departure__date=day).first()
    if flight is None:
        raise ToolError(
            f"No flight {ascii(number)[:20]} leaves on {day}. See when it does: call find_records "
            'with {"model": "flights.flight", "filters": {"number": "RF100"}, '
            '"fields": ["scheduled_departure"]}.'
        )
    return flight


def set_delay(request: HttpRequest, flight: Flight, minutes: int) -> None:
    """As the admin would: its permission is asked, its history written."""
    model_admin = admin.site.get_model_admin(Flight)
    if not 0 <= minutes <= LONGEST_DELAY:
        raise ToolError(f"Give minutes from 0 to {LONGEST_DELAY}; beyond that, cancel the flight.")
    if not model_admin.has_change_permission(request, flight) or not flight.can_change:
        raise ToolError(
            f"{flight} is {flight.get_status_display().lower()} and cannot be delayed any more. "
            "Flights with status scheduled, delayed or boarding can."
        )
    flight.delay_minutes = minutes
    flight.status = Flight.Status.DELAYED if minutes else Flight.Status.SCHEDULED
    flight.save(update_fields=["delay_minutes", "status"])
    model_admin.log_change(request, flight, [{"changed": {"fields": ["delay", "status"]}}])
