"""What assistants see of the flight desk: exposures of models, and functions as tools.

The level of each model is WRITE, so the admin alone decides who may change what.
"""

from __future__ import annotations

from datetime import date

from asgiref.sync import sync_to_async
from django.http import HttpRequest

import mcp_django as mcp
from demo_project.flights import schedule
from demo_project.flights import timetable as timetable
from demo_project.flights.models import (
    Aircraft,
    Airline,
    Airport,
    Booking,
    Country,
    Flight,
    Incident,
    Passenger,
    Tag,
)

mcp.register(
    Country,
    fields=["id", "code", "name"],
    search_fields=["=code", "name"],
    label_fields=["name"],
    level=mcp.Level.WRITE,
    description="Countries by ISO 3166 code, as DE.",
)
mcp.register(
    Aircraft,
    fields=["id", "name", "seats"],
    search_fields=["name"],
    label_fields=["name"],
    level=mcp.Level.WRITE,
    description="Types of aircraft, and the number of their seats.",
)
mcp.register(
    Tag,
    fields=["id", "name"],
    # Otherwise a unique column makes no groups, and nobody could count the incidents of each tag.
    group_fields=["name"],
    search_fields=["name"],
    label_fields=["name"],
    level=mcp.Level.WRITE,
    description="Words by which incidents are found, as compensation.",
)


@mcp.register(Airline)
class AirlineExposure(mcp.ModelExposure):
    level = mcp.Level.WRITE
    fields = ["id", "name", "iata", "icao", "country"]
    filter_fields = [*fields, "country__code", "country__name"]
    search_fields = ["name", "=iata", "=icao"]
    label_fields = ["name"]
    description = "The airlines of the desk. They are invented."


@mcp.register(Airport)
class AirportExposure(mcp.ModelExposure):
    level = mcp.Level.WRITE
    description = "All airports of the world. Only those with an IATA code have flights."
    fields = [
        "id",
        "icao",
        "iata",
        "name",
        "city",
        "subdivision",
        "country",
        "elevation",
        "latitude",
        "longitude",
        "timezone",
    ]
    filter_fields = [*fields, "country__code", "country__name"]
    order_fields = [*fields, "country__name"]
    search_fields = ["=icao", "=iata", "name", "city"]
    label_fields = ["iata", "name"]
    ordering = ["icao"]


@mcp.register(Flight)
class FlightExposure(mcp.ModelExposure):
    level = mcp.Level.WRITE
    description = "One departure. delay_minutes counts from scheduled_departure."
    fields = [
        "id",
        "number",
        "airline",
        "origin",
        "destination",
        "scheduled_departure",
        "scheduled_arrival",
        "status",
        "delay_minutes",
        "gate",
        "aircraft",
        "boarded",
    ]
    computed = ["route"]
    filter_fields = [
        *fields,
        "airline__name",
        "airline__iata",
        "origin__iata",
        "origin__city",
        "origin__country__code",
        "origin__country__name",
        "destination__iata",
        "destination__city",
        "destination__country__code",
        "destination__country__name",
        "bookings",
        "incidents",
    ]
    order_fields = [*fields, "airline__name", "origin__iata", "destination__iata"]
    search_fields = ["number", "origin__city", "destination__city"]
    label_fields = ["number", "scheduled_departure"]
    ordering = ["scheduled_departure", "number"]
    actions = ["delay_flights", "cancel_flights", "passenger_manifest", "notify_passengers"]


@mcp.register(Incident)
class IncidentExposure(mcp.ModelExposure):
    level = mcp.Level.WRITE
    description = "What went wrong at an airport or on a flight. closed: nothing is left to do."
    fields = [
        "id",
        "kind",
        "severity",
        "airport",
        "flight",
        "reported_at",
        "description",
        "report",
        "closed",
        "tags",
    ]
    # Who reports an incident stays confidential. A new one names whoever is logged in.
    exclude = ["reported_by"]
    search_fields = ["description", "=airport__iata", "flight__number"]
    ordering = ["-reported_at"]
    actions = ["close_incidents"]


@mcp.register(Passenger)
class PassengerExposure(mcp.ModelExposure):
    level = mcp.Level.WRITE
    description = "Who flies. E-mail addresses and passport numbers are never shown."
    fields = ["id", "name", "notes"]
    search_fields = ["name"]
    label_fields = ["name"]
    ordering = ["name", "id"]


@mcp.register(Booking)
class BookingExposure(mcp.ModelExposure):
    level = mcp.Level.WRITE
    description = (
        "A seat for a passenger on a flight. Prices are euros. Bookings are kept until the day of "
        "the flight is over; boarded of the flight stays."
    )
    fields = ["id", "reference", "flight", "passenger", "seat", "price"]
    filter_fields = [
        *fields,
        "flight__number",
        "flight__status",
        "flight__scheduled_departure",
        "flight__origin__iata",
        "flight__destination__iata",
        "flight__airline__iata",
        "passenger__name",
    ]
    search_fields = ["=reference", "passenger__name"]
    label_fields = ["reference"]


@mcp.tool(read_only=True, permission="flights.view_flight")
def on_time_performance(
    request: HttpRequest, since: date, until: date
) -> schedule.PerformanceReport:
    """How punctual each airline was: flights that left at most 15 minutes late are on time.

    Args:
        since: First day of departure.
        until: Last day of departure, included.
    """
    return schedule.performance(request, since, until)


@mcp.tool(read_only=True, idempotent=True, permission="flights.view_airport")
async def distance(request: HttpRequest, origin: str, destination: str) -> schedule.Distance:
    """The great-circle distance between two airports.

    Args:
        origin: IATA code, as FRA.
        destination: IATA code, as JFK.
    """
    start = await sync_to_async(schedule.find_airport)(request, origin)
    end = await sync_to_async(schedule.find_airport)(request, destination)
    return schedule.distance(start, end)


@mcp.tool(read_only=True, permission="flights.view_flight")
def check_schedule(ctx: mcp.Context, since: date, until: date) -> schedule.ScheduleReport:
    """Look for gates that two flights want at the same time. Reports progress day by day.

    Args:
        since: First day of departure.
        until: Last day of departure, included.
    """
    report = schedule.ScheduleReport()
    days = schedule.days(since, until)
    for number, day in enumerate(days, start=1):
        ctx.progress(number, total=len(days), message=f"{day:%d %B}")
        report.add(schedule.flights_of_day(ctx.request, day))
    return report


def airport_codes(request: HttpRequest, value: str) -> list[str]:
    """IATA codes of airports that the caller may see and that have departures."""
    codes = schedule.departing_airports(request).filter(iata__istartswith=value)
    return list(codes.values_list("iata", flat=True)[:100])


@mcp.prompt(
    title="Shift handover",
    permission="flights.view_flight",
    completions={"airport": airport_codes},
)
def shift_handover(request: HttpRequest, airport: str, day: date) -> list[mcp.PromptMessage]:
    """Write the handover of a shift: what is late, cancelled or still to leave.

    Args:
        airport: IATA code, as FRA.
        day: Day of the scheduled departures, in UTC.
    """
    found = schedule.find_airport(request, airport)
    flights = schedule.departures(request, found, day)
    lines = [
        f"{one.scheduled_departure:%H:%M} {one.number} to {one.destination.iata}, gate "
        f"{one.gate or 'open'}: {one.get_status_display()}, {one.delay_minutes} minutes late"
        for one in flights
    ]
    task = (
        f"Write the handover for {found.name} on {day}, by urgency. "
        "Begin with what needs a decision."
    )
    return [
        mcp.PromptMessage(content=mcp.Text(task)),
        mcp.PromptMessage(content=mcp.Text("\n".join(lines) or "There are no departures.")),
    ]


@mcp.tool(destructive=False, idempotent=True, atomic=True, permission="flights.change_flight")
def report_delay(request: HttpRequest, flight: str, day: date, minutes: int) -> str:
    """Set how late a flight leaves. Only for flights that are still on the ground.

    Args:
        flight: Flight number, as RF100.
        day: Day of the scheduled departure, in UTC.
        minutes: Whole delay in minutes; 0 puts the flight back on schedule.
    """
    found = schedule.find_flight(request, flight, day)
    schedule.set_delay(request, found, minutes)
    return f"{found} now leaves at {found.expected_departure:%H:%M} UTC."
