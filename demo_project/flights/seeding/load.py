"""Everything into the database: once, in one transaction, by bulk inserts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import airportsdata
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Model

from demo_project.flights.models import (
    Airline,
    Airport,
    Booking,
    Country,
    Flight,
    Incident,
    Passenger,
)
from demo_project.flights.seeding import network, people, traffic

BATCH = 2_000


def load_everything() -> bool:
    """Fill an empty database. False: it was filled before."""
    if Country.objects.exists():
        return False
    with transaction.atomic():
        load_places()
        rows = traffic.flights()
        load_flights(rows)
        load_people(rows)
        load_incidents(rows)
    return True


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
                aircraft=row.aircraft,
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
    insert(list(incidents(flights)))


def incidents(flights: Sequence[traffic.FlightRow]) -> Iterator[Incident]:
    airports = dict(Airport.objects.exclude(iata="").values_list("iata", "pk"))
    for index, row in enumerate(traffic.incidents(flights), 1):
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
        f"Reported: {row.reported_at:%Y-%m-%d %H:%M} UTC\nKind:     {row.kind}\n"
        f"Severity: {row.severity} of 4\n\n{row.description}\n"
    )
    if not default_storage.exists(name):
        default_storage.save(name, ContentFile(text.encode()))
    return name
