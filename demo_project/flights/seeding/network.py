"""Who flies where: invented airlines between real airports, read from the files in `data`.

The positions of these airports are kept here, and not taken from the airport database, so that a
newer release of it moves no flight.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from demo_project.flights.geography import Position, great_circle_km

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, kw_only=True)
class Carrier:
    iata: str
    icao: str
    name: str
    country: str
    hub: str
    routes: int
    #: Share of flights that leave on time on an ordinary day.
    punctuality: float


@dataclass(frozen=True, kw_only=True)
class AircraftRow:
    name: str
    seats: int
    #: Of the seats of a full row.
    letters: str
    #: Kilometres of the routes that it flies.
    nearest: int
    farthest: int

    def seat_names(self) -> list[str]:
        """Return 1A, 1C and so on, from the nose."""
        width = len(self.letters)
        return [f"{at // width + 1}{self.letters[at % width]}" for at in range(self.seats)]


@dataclass(frozen=True, kw_only=True)
class Service:
    """One flight number: flown every day at the same time."""

    number: str
    carrier: Carrier
    origin: str
    destination: str
    km: int
    #: Minutes after midnight UTC. A return flight may leave on the next day.
    departure: int
    duration: int
    aircraft: AircraftRow
    gate: str


def rows_of(name: str) -> Iterator[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def countries() -> list[tuple[str, str]]:
    return [(row["code"], row["name"]) for row in rows_of("countries.csv")]


def carriers() -> list[Carrier]:
    return [
        Carrier(
            iata=row["iata"],
            icao=row["icao"],
            name=row["name"],
            country=row["country"],
            hub=row["hub"],
            routes=int(row["routes"]),
            punctuality=float(row["punctuality"]),
        )
        for row in rows_of("airlines.csv")
    ]


@cache
def fleet() -> tuple[AircraftRow, ...]:
    return tuple(
        AircraftRow(
            name=row["name"],
            seats=int(row["seats"]),
            letters=row["letters"],
            nearest=int(row["nearest"]),
            farthest=int(row["farthest"]),
        )
        for row in rows_of("aircraft.csv")
    )


def positions() -> dict[str, Position]:
    return {
        row["iata"]: (float(row["latitude"]), float(row["longitude"]))
        for row in rows_of("hubs.csv")
    }


def services(random: Random) -> list[Service]:
    """Every flight number: a way out and a way back for each route."""
    where = positions()
    found: list[Service] = []
    for carrier in carriers():
        for index, destination in enumerate(destinations(random, carrier, where)):
            km = round(great_circle_km(where[carrier.hub], where[destination]))
            found.extend(pair(random, carrier, destination, km=km, number=100 + 2 * index))
    return found


def destinations(random: Random, carrier: Carrier, where: dict[str, Position]) -> list[str]:
    """Mostly near ones, and some at the other end of the world."""
    hub = where[carrier.hub]
    others = sorted(
        (iata for iata in where if iata != carrier.hub),
        key=lambda iata: great_circle_km(hub, where[iata]),
    )
    far = carrier.routes // 3
    return [
        *random.sample(others[:30], carrier.routes - far),
        *random.sample(others[30:], far),
    ]


def pair(
    random: Random, carrier: Carrier, destination: str, *, km: int, number: int
) -> tuple[Service, Service]:
    # 30 minutes for taxi, climb and approach, the rest at 810 km/h; schedules know 5 minutes.
    duration = round((30 + km / 13.5) / 5) * 5
    departure = random.randrange(5 * 60, 18 * 60, 5)
    aircraft = random.choice([one for one in fleet() if one.nearest <= km < one.farthest])
    out = Service(
        number=f"{carrier.iata}{number}",
        carrier=carrier,
        origin=carrier.hub,
        destination=destination,
        km=km,
        departure=departure,
        duration=duration,
        aircraft=aircraft,
        gate=gate(random),
    )
    back = Service(
        number=f"{carrier.iata}{number + 1}",
        carrier=carrier,
        origin=destination,
        destination=carrier.hub,
        km=km,
        departure=departure + duration + random.randrange(45, 120, 5),
        duration=duration,
        aircraft=aircraft,
        gate=gate(random),
    )
    return out, back


def gate(random: Random) -> str:
    return f"{random.choice('AB')}{random.randrange(1, 7)}"
