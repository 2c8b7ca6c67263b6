"""Thirteen tasks of a flight desk, solved by a scripted assistant. Run within the demo.

Each task makes the calls that a model makes after describe_model, and answers with what it read
beside what the ORM says.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Avg, Count
from django.db.models.functions import TruncMonth

from demo_project.flights import models, schedule
from mcp_django.testing import Client
from mcp_django.testing.client import ToolAnswer

FLIGHT, BOOKING, INCIDENT = "flights.flight", "flights.booking", "flights.incident"
WEEK = ("2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z")
TOMORROW = "2026-11-19"


class Assistant:
    """Calls tools as one user, and counts what it receives."""

    def __init__(self, username: str) -> None:
        self.user = User.objects.get(username=username)
        self.client = Client(user=self.user)
        self.calls = self.received = 0

    def call(self, tool: str, **arguments: Any) -> ToolAnswer:
        params = {"name": tool, "arguments": arguments}
        result = self.client.exchange("tools/call", params)[-1]["result"]
        # Files come as resources.
        texts = [one.get("resource", one).get("text", "") for one in result["content"]]
        answer = ToolAnswer(is_error=result.get("isError", False), text="\n".join(texts))
        assert not answer.is_error, f"{tool} {arguments}: {answer.text}"
        self.calls += 1
        self.received += len(answer.text)
        return answer

    def flight(self, number: str, **filters: Any) -> int:
        """The key of the next flight with a number that is still scheduled."""
        found = self.call(
            "find_records",
            model=FLIGHT,
            filters={"number": number, "status": "scheduled", **filters},
            fields=["id", "scheduled_departure"],
            order_by=["scheduled_departure"],
            limit=1,
        )
        return found.records[0]["id"]

    def act(self, action: str, pk: int, **answer: Any) -> str:
        """Run an action on one flight, and confirm it where that is asked for."""
        tool, arguments = f"flights_flight_{action}", {"pks": [pk]}
        if answer:
            arguments["answer"] = answer
        first = self.call(tool, **arguments)
        if "confirmation" not in first.text:
            return first.text
        return self.call(tool, **arguments, confirmation=first.data["confirmation"]).text


def late_arrivals_in_frankfurt(desk: Assistant) -> Iterator[Any]:
    found = desk.call(
        "find_records",
        model=FLIGHT,
        filters={
            "destination__iata": "FRA",
            "delay_minutes__gt": 60,
            "scheduled_departure__gte": WEEK[0],
            "scheduled_departure__lt": WEEK[1],
        },
        fields=["number", "airline__name", "delay_minutes"],
    )
    yield sorted(tuple(one.values()) for one in found.records)
    late = models.Flight.objects.filter(
        destination__iata="FRA",
        delay_minutes__gt=60,
        scheduled_departure__gte=datetime(2026, 11, 16, tzinfo=UTC),
        scheduled_departure__lt=datetime(2026, 11, 23, tzinfo=UTC),
    )
    yield sorted(late.values_list("number", "airline__name", "delay_minutes"))


def bookings_by_airline_and_month(desk: Assistant) -> Iterator[Any]:
    found = desk.call(
        "aggregate_records",
        model=BOOKING,
        group_by=["flight__airline__name", "flight__scheduled_departure__trunc_month"],
    )
    yield sorted(
        (
            one["flight__airline__name"],
            one["flight__scheduled_departure__trunc_month"][:7],
            one["count"],
        )
        for one in found.records
    )
    groups = (
        models.Booking.objects.values_list("flight__airline__name")
        .annotate(month=TruncMonth("flight__scheduled_departure"), count=Count("pk"))
        .order_by()
    )
    yield sorted((name, f"{month:%Y-%m}", count) for name, month, count in groups)


def delay_by_half_an_hour(desk: Assistant) -> Iterator[Any]:
    pk = desk.flight("RF107")
    before = models.Flight.objects.get(pk=pk).delay_minutes
    desk.act("delay_flights", pk, minutes=30)
    changed = models.Flight.objects.get(pk=pk)
    yield changed.status, changed.delay_minutes
    yield "delayed", before + 30


def average_delay_by_airline(desk: Assistant) -> Iterator[Any]:
    found = desk.call(
        "aggregate_records",
        model=FLIGHT,
        group_by=["airline__name"],
        metrics={"delay": {"avg": "delay_minutes"}},
    )
    yield {one["airline__name"]: round(one["delay"], 1) for one in found.records}
    groups = models.Flight.objects.values_list("airline__name").annotate(Avg("delay_minutes"))
    yield {name: round(delay, 1) for name, delay in groups.order_by()}


def gate_conflicts_of_tomorrow(desk: Assistant) -> Iterator[Any]:
    found = desk.call("check_schedule", since=TOMORROW, until=TOMORROW)
    yield found.data["flights"], found.data["conflict_count"]
    flights = models.Flight.objects.filter(scheduled_departure__date=TOMORROW)
    flights = list(flights.exclude(status="cancelled").select_related("origin"))
    yield len(flights), len(schedule.conflicts(flights))


def distance_to_new_york(desk: Assistant) -> Iterator[Any]:
    found = desk.call("distance", origin="FRA", destination="JFK")
    yield 6_150 < found.data["kilometres"] < 6_250
    yield True


def open_critical_incidents_in_frankfurt(desk: Assistant) -> Iterator[Any]:
    severity = models.Incident.Severity.CRITICAL
    in_frankfurt = models.Incident.objects.filter(airport__iata="FRA")
    # On most days there is none.
    newest = in_frankfurt.latest("reported_at")
    models.Incident.objects.filter(pk=newest.pk).update(severity=severity, closed=False)
    found = desk.call(
        "find_records",
        model=INCIDENT,
        filters={"airport__iata": "FRA", "severity": severity.value, "closed": False},
        fields=["id"],
    )
    yield sorted(one["id"] for one in found.records)
    wanted = in_frankfurt.filter(severity=severity, closed=False)
    yield sorted(wanted.values_list("pk", flat=True))


def bookings_of_sofia_olsen(desk: Assistant) -> Iterator[Any]:
    found = desk.call(
        "find_records",
        model=BOOKING,
        filters={"passenger__name": "Sofia Olsen"},
        fields=["reference", "passenger", "flight__number"],
    )
    yield sorted((one["reference"], one["flight__number"]) for one in found.records)
    wanted = models.Booking.objects.filter(passenger__name="Sofia Olsen")
    yield sorted(wanted.values_list("reference", "flight__number"))


def cancel_a_flight_to_palma(desk: Assistant) -> Iterator[Any]:
    found = desk.call(
        "find_records",
        model=FLIGHT,
        filters={
            "airline__iata": "RF",
            "destination__iata": "PMI",
            "scheduled_departure__date": TOMORROW,
        },
        fields=["id", "number"],
    )
    pk = found.records[0]["id"]
    desk.act("cancel_flights", pk)
    yield models.Flight.objects.get(pk=pk).status
    yield "cancelled"


def busiest_german_airports(desk: Assistant) -> Iterator[Any]:
    found = desk.call(
        "aggregate_records",
        model=FLIGHT,
        filters={"origin__country__code": "DE"},
        group_by=["origin__iata"],
        order_by=["-count"],
        limit=5,
    )
    yield [one["count"] for one in found.records]
    groups = models.Flight.objects.filter(origin__country__code="DE").values("origin__iata")
    counts = groups.annotate(count=Count("pk")).order_by("-count")
    yield [one["count"] for one in counts[:5]]


def early_departures_from_germany(desk: Assistant) -> Iterator[Any]:
    filters = {
        "origin__country__code": "DE",
        "scheduled_departure__gte": f"{TOMORROW}T00:00:00Z",
        "scheduled_departure__lt": f"{TOMORROW}T06:00:00Z",
    }
    fields = ["number", "origin__iata", "destination__iata"]
    found = desk.call("find_records", model=FLIGHT, filters=filters, fields=fields, limit=200)
    yield sorted(tuple(one.values()) for one in found.records)
    yield sorted(models.Flight.objects.filter(**filters).values_list(*fields))


def manifest_of_a_flight(desk: Assistant) -> Iterator[Any]:
    pk = desk.flight("RF107")
    lines = desk.act("passenger_manifest", pk)
    seats = models.Booking.objects.filter(flight=pk)
    yield all(reference in lines for reference in seats.values_list("reference", flat=True))
    yield seats.exists()


def report_an_incident(desk: Assistant) -> Iterator[Any]:
    """A stuck jet bridge in Frankfurt."""
    found = desk.call(
        "find_records", model="flights.airport", filters={"iata": "FRA"}, fields=["id"]
    )
    values = {
        "airport": found.records[0]["id"],
        "kind": "technical",
        "severity": 2,
        "reported_at": "2026-11-18T11:40:00Z",
        "description": "A jet bridge is stuck.",
    }
    made = desk.call("create_record", model=INCIDENT, values=values).data

    incident = models.Incident.objects.select_related("airport").get(pk=made["pk"])
    yield made["record"]["description"]
    yield incident.description if incident.airport.iata == "FRA" else ""


#: Each with the user whose assistant solves it.
TASKS = {
    late_arrivals_in_frankfurt: "dispatcher",
    bookings_by_airline_and_month: "dispatcher",
    delay_by_half_an_hour: "dispatcher",
    average_delay_by_airline: "analyst",
    gate_conflicts_of_tomorrow: "dispatcher",
    distance_to_new_york: "dispatcher",
    open_critical_incidents_in_frankfurt: "dispatcher",
    bookings_of_sofia_olsen: "dispatcher",
    cancel_a_flight_to_palma: "dispatcher",
    busiest_german_airports: "analyst",
    early_departures_from_germany: "dispatcher",
    manifest_of_a_flight: "dispatcher",
    report_an_incident: "dispatcher",
}


def solve_tasks() -> list[dict[str, Any]]:
    """What each task read and what is right, its calls and what it received, all undone."""
    solved = []
    for task, username in TASKS.items():
        with transaction.atomic():
            desk = Assistant(username)
            answer, right = task(desk)
            transaction.set_rollback(True)
        solved.append(
            {
                "task": task.__name__,
                "answer": answer,
                "right": right,
                "calls": desk.calls,
                "received": desk.received,
            }
        )
    return solved
