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
    "flights from a country on one day": Question(
        model="flights.flight",
        asked={
            "filters": {
                "origin__country__name": "Germany",
                "scheduled_departure__date": "2026-11-19",
            },
            "order_by": ["scheduled_departure", "number"],
        },
        orm=lambda m: m.Flight.objects.filter(
            origin__country__name="Germany", scheduled_departure__date=date(2026, 11, 19)
        ).order_by("scheduled_departure", "number"),
    ),
    "long delays, the longest first": Question(
        model="flights.flight",
        asked={
            "filters": {"status__in": ["landed", "departed"], "delay_minutes__gte": 90},
            "order_by": ["-delay_minutes", "airline", "-number"],
        },
        orm=lambda m: m.Flight.objects.filter(
            status__in=["landed", "departed"], delay_minutes__gte=90
        ).order_by("-delay_minutes", "airline_id", "-number"),
    ),
    "a period with an offset from UTC": Question(
        model="flights.flight",
        asked={
            "filters": {
                "scheduled_departure__gte": "2026-11-10T02:00:00+02:00",
                "scheduled_departure__lt": "2026-11-10T12:00:00Z",
            }
        },
        orm=lambda m: m.Flight.objects.filter(
            scheduled_departure__gte=moment(10), scheduled_departure__lt=moment(10, 12)
        ).order_by("scheduled_departure", "number"),
    ),
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
    "all but landed and cancelled flights of a city": Question(
        model="flights.flight",
        asked={
            "filters": {"origin__city": "Paris"},
            "exclude": {"status__in": ["landed", "cancelled"]},
            "order_by": ["id"],
        },
        orm=lambda m: (
            m.Flight.objects.filter(origin__city="Paris")
            .exclude(status__in=["landed", "cancelled"])
            .order_by("id")
        ),
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
    "airports by a code in small letters": Question(
        model="flights.airport",
        asked={"search": "eddf"},
        orm=lambda m: m.Airport.objects.filter(
            Q(icao__iexact="eddf")
            | Q(iata__iexact="eddf")
            | Q(name__icontains="eddf")
            | Q(city__icontains="eddf")
        ),
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
    "airports below the sea, by position": Question(
        model="flights.airport",
        asked={
            "filters": {"elevation__lt": 0, "latitude__range": [0.5, 60]},
            "exclude": {"iata": ""},
            "order_by": ["elevation", "-longitude"],
        },
        orm=lambda m: (
            m.Airport.objects.filter(elevation__lt=0, latitude__range=(0.5, 60))
            .exclude(iata="")
            .order_by("elevation", "-longitude")
        ),
    ),
    "dear seats on flights that were cancelled": Question(
        model="flights.booking",
        asked={
            "filters": {"flight__status": "cancelled", "price__gte": "150.50"},
            "order_by": ["-price", "reference"],
        },
        orm=lambda m: m.Booking.objects.filter(
            flight__status="cancelled", price__gte="150.50"
        ).order_by("-price", "reference"),
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
    "passengers with needs": Question(
        model="flights.passenger",
        asked={"filters": {"notes__icontains": "wheelchair"}, "exclude": {"name__contains": "a"}},
        orm=lambda m: (
            m.Passenger.objects.filter(notes__icontains="wheelchair")
            .exclude(name__contains="a")
            .order_by("name")
        ),
    ),
    "open incidents, those without a flight among them": Question(
        model="flights.incident",
        asked={"filters": {"closed": False}, "order_by": ["flight", "-severity"]},
        orm=lambda m: m.Incident.objects.filter(closed=False).order_by("flight_id", "-severity"),
    ),
    "incidents of whole airports": Question(
        model="flights.incident",
        asked={"filters": {"flight__isnull": True, "severity__gte": 2}, "order_by": ["id"]},
        orm=lambda m: m.Incident.objects.filter(flight__isnull=True, severity__gte=2),
    ),
}
