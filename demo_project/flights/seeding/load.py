"""Everything into the database: once, by bulk inserts. Each start moves it to its day."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta

import airportsdata
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import F, Model

from demo_project import clock
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
from demo_project.flights.seeding import network, people, traffic

BATCH = 2_000
#: Further than the schedule is long.
FAR = timedelta(days=10_000)


def is_empty() -> bool:
    return not Country.objects.exists()


@transaction.atomic
def load_everything(say: Callable[[str], None]) -> None:
    """Fill an empty database with rows of the day that they are made for."""
    say("Filling the database: airports ...")
    load_places()
    say("Filling the database: flights ...")
    rows = traffic.flights()
    load_flights(rows)
    say("Filling the database: passengers and bookings ...")
    load_people(rows)
    load_incidents(rows)
    clock.keep_today(clock.MADE_FOR)


@transaction.atomic
def move_to(day: date) -> timedelta:
    """Move the schedule, and what staff have changed in it, by whole days. All times stay."""
    by = day - clock.today()
    if by:
        # A flight leaves daily, and SQLite holds each row against all others on its way.
        for step in (by + FAR, -FAR):
            Flight.objects.update(
                scheduled_departure=F("scheduled_departure") + step,
                scheduled_arrival=F("scheduled_arrival") + step,
            )
        Incident.objects.update(reported_at=F("reported_at") + by)
        clock.keep_today(day)
    return by


def insert(rows: Sequence[Model]) -> None:
    type(rows[0])._default_manager.bulk_create(rows, batch_size=BATCH)


def load_places() -> None:
    """Keys count from 1 in the order of codes, so that they are the same on every machine."""
    countries = [Country(id=i, code=c, name=n) for i, (c, n) in enumerate(network.countries(), 1)]
    insert(countries)
    keys = {country.code: country.pk for country in countries}
    airports = airportsdata.load("ICAO")
    insert(
        [
            Airport(
                id=index,
                icao=icao,
                iata=airport["iata"],
                name=airport["name"],
                city=airport["city"],
                subdivision=airport["subd"],
                country_id=keys[airport["country"]],
                elevation=round(airport["elevation"]),
                latitude=airport["lat"],
                longitude=airport["lon"],
                timezone=airport["tz"],
            )
            for index, (icao, airport) in enumerate(sorted(airports.items()), 1)
        ]
    )
    insert(
        [
            Airline(id=i, iata=c.iata, icao=c.icao, name=c.name, country_id=keys[c.country])
            for i, c in enumerate(network.carriers(), 1)
        ]
    )


def load_flights(rows: Sequence[traffic.FlightRow]) -> None:
    airlines = dict(Airline.objects.values_list("iata", "pk"))
    airports = dict(Airport.objects.exclude(iata="").values_list("iata", "pk"))
    insert(
        [
            Aircraft(id=index, name=row.name, seats=row.seats)
            for index, row in enumerate(network.fleet(), 1)
        ]
    )
    aircraft = dict(Aircraft.objects.values_list("name", "pk"))
    insert(
        [
            Flight(
                id=index,
                number=row.number,
                airline_id=airlines[row.airline],
                origin_id=airports[row.origin],
                destination_id=airports[row.destination],
                scheduled_departure=row.scheduled_departure,
                scheduled_arrival=row.scheduled_arrival,
                status=row.status,
                delay_minutes=row.delay_minutes,
                gate=row.gate,
                aircraft_id=aircraft[row.aircraft.name],
                boarded=row.boarded,
            )
            for index, row in enumerate(rows, 1)
        ]
    )


def load_people(rows: Sequence[traffic.FlightRow]) -> None:
    insert(
        [
            Passenger(
                id=index,
                name=row.name,
                email=row.email,
                passport_number=row.passport_number,
                notes=row.notes,
            )
            for index, row in enumerate(people.passengers(), 1)
        ]
    )
    insert(
        [
            Booking(
                id=index,
                flight_id=row.flight + 1,
                passenger_id=row.passenger + 1,
                seat=row.seat,
                price=row.price,
                reference=row.reference,
            )
            for index, row in enumerate(people.bookings(rows), 1)
        ]
    )


def load_incidents(flights: Sequence[traffic.FlightRow]) -> None:
    rows = traffic.incidents(flights)
    insert(list(incidents(flights, rows)))
    tags = {
        name: Tag(id=index, name=name)
        for index, name in enumerate([*traffic.TAGS, *traffic.TAGS_OF_DELAYS], 1)
    }
    insert(list(tags.values()))
    insert(
        [
            Incident.tags.through(incident_id=index, tag_id=tags[name].pk)
            for index, row in enumerate(rows, 1)
            for name in row.tags
        ]
    )


def incidents(
    flights: Sequence[traffic.FlightRow], rows: Sequence[traffic.IncidentRow]
) -> Iterator[Incident]:
    airports = dict(Airport.objects.exclude(iata="").values_list("iata", "pk"))
    for index, row in enumerate(rows, 1):
        flight = flights[row.flight]
        yield Incident(
            id=index,
            flight_id=row.flight + 1,
            airport_id=airports[flight.origin],
            kind=row.kind,
            severity=row.severity,
            reported_at=row.reported_at,
            reported_by=row.reported_by,
            description=row.description,
            closed=row.closed,
            report=report(index, row, flight),
        )


def report(index: int, row: traffic.IncidentRow, flight: traffic.FlightRow) -> str:
    """Write the report's file, unless an earlier run that was broken off left it."""
    name = f"incidents/incident-{index:04}.txt"
    text = (
        f"Incident {index}\n\nFlight:   {flight.number} {flight.origin}-{flight.destination}\n"
        f"Kind:     {row.kind}\n"
        f"Severity: {row.severity} of 4\n\n{row.description}\n"
    )
    if not default_storage.exists(name):
        default_storage.save(name, ContentFile(text.encode()))
    return name
