"""Questions for the tool, and the same in the ORM. What is asked here is answered in `inside`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from django.db.models import Q


@dataclass(frozen=True, kw_only=True)
class Question:
    model: str
    #: Arguments of find_records.
    asked: dict[str, Any]
    #: The ORM's answer, from the module of the models.
    orm: Callable[[Any], Any]


def moment(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, tzinfo=UTC)


QUESTIONS = {
    "a range of moments into a city": Question(
        model="flights.flight",
        asked={
            "filters": {
                "scheduled_departure__range": ["2026-11-05T06:00:00Z", "2026-11-09T18:00:00Z"],
                "destination__city__istartswith": "lon",
            },
            "order_by": ["-scheduled_departure"],
        },
        orm=lambda m: m.Flight.objects.filter(
            scheduled_departure__range=(moment(5, 6), moment(9, 18)),
            destination__city__istartswith="lon",
        ).order_by("-scheduled_departure"),
    ),
    "the early hours of a weekday": Question(
        model="flights.flight",
        asked={
            "filters": {"scheduled_departure__week_day": 2, "scheduled_departure__hour__lte": 5}
        },
        orm=lambda m: m.Flight.objects.filter(
            scheduled_departure__week_day=2, scheduled_departure__hour__lte=5
        ).order_by("scheduled_departure", "number"),
    ),
    "two conditions that together exclude": Question(
        model="flights.flight",
        asked={
            "filters": {"airline__iata": "RF", "scheduled_departure__day": 12},
            "exclude": {"origin__iata": "FRA", "status": "landed"},
            "order_by": ["number"],
        },
        orm=lambda m: (
            m.Flight.objects.filter(airline__iata="RF", scheduled_departure__day=12)
            .exclude(origin__iata="FRA", status="landed")
            .order_by("number")
        ),
    ),
    "alternatives": Question(
        model="flights.flight",
        asked={
            "filters": {"scheduled_departure__date": "2026-11-18"},
            "any_of": [
                {"origin__iata": "FRA", "status": "delayed"},
                {"destination__iata__in": ["JFK", "ORD"]},
                {"delay_minutes__gt": 60},
            ],
            "order_by": ["-origin", "scheduled_departure"],
        },
        orm=lambda m: m.Flight.objects.filter(
            Q(origin__iata="FRA", status="delayed")
            | Q(destination__iata__in=["JFK", "ORD"])
            | Q(delay_minutes__gt=60),
            scheduled_departure__date=date(2026, 11, 18),
        ).order_by("-origin_id", "scheduled_departure"),
    ),
    "flights by words": Question(
        model="flights.flight",
        asked={"search": "paris 10", "filters": {"status": "scheduled"}},
        orm=lambda m: m.Flight.objects.filter(
            *(
                Q(number__icontains=word)
                | Q(origin__city__icontains=word)
                | Q(destination__city__icontains=word)
                for word in ("paris", "10")
            ),
            status="scheduled",
        ).order_by("scheduled_departure", "number"),
    ),
    "airports of countries by three columns": Question(
        model="flights.airport",
        asked={
            "filters": {"country__code__in": ["AT", "CH"]},
            "order_by": ["country__name", "-elevation", "name"],
        },
        orm=lambda m: m.Airport.objects.filter(country__code__in=["AT", "CH"]).order_by(
            "country__name", "-elevation", "name"
        ),
    ),
    "bookings of a name": Question(
        model="flights.booking",
        asked={
            "filters": {"passenger__name__icontains": "anna", "flight__number__startswith": "R"},
            "order_by": ["-reference"],
        },
        orm=lambda m: m.Booking.objects.filter(
            passenger__name__icontains="anna", flight__number__startswith="R"
        ).order_by("-reference"),
    ),
}
