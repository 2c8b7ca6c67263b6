"""The flights and incidents of three weeks, the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from demo_project.flights.models import Flight, Incident
from demo_project.flights.seeding.network import Service, services

SEED = 20261102
FIRST_DAY = datetime(2026, 11, 2, tzinfo=UTC)
DAYS = 20
#: The desk's clock stands here.
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
#: Airports where on one day (counted from the first) nothing went well.
STORMS = {("FRA", 6), ("MUC", 6), ("LHR", 10), ("AMS", 10), ("ORD", 13), ("JFK", 13)}
INCIDENTS = 240

Status = Flight.Status


@dataclass(frozen=True, kw_only=True)
class FlightRow:
    number: str
    airline: str
    origin: str
    destination: str
    scheduled_departure: datetime
    scheduled_arrival: datetime
    status: str
    delay_minutes: int
    gate: str
    aircraft: str
    km: int


@dataclass(frozen=True, kw_only=True)
class IncidentRow:
    #: Index of the flight among all.
    flight: int
    kind: str
    severity: int
    reported_at: datetime
    reported_by: str
    description: str
    closed: bool


def flights() -> list[FlightRow]:
    """5,000 flights: 250 flight numbers on each of 20 days."""
    network = services(Random(f"{SEED}:network"))
    random = Random(f"{SEED}:flights")
    return [flown(random, service, day) for day in range(DAYS) for service in network]


def flown(random: Random, service: Service, day: int) -> FlightRow:
    departure = FIRST_DAY + timedelta(days=day, minutes=service.departure)
    arrival = departure + timedelta(minutes=service.duration)
    storm = (service.origin, day) in STORMS or (service.destination, day) in STORMS
    delay = late_by(random, service.carrier.punctuality, storm=storm)
    luck = random.random()
    status = status_at_noon(departure, arrival, delay, luck=luck, storm=storm)
    if status == Status.CANCELLED or (status == Status.SCHEDULED and departure > NOW):
        delay = 0
    return FlightRow(
        number=service.number,
        airline=service.carrier.iata,
        origin=service.origin,
        destination=service.destination,
        scheduled_departure=departure,
        scheduled_arrival=arrival,
        status=str(status),
        delay_minutes=delay,
        gate=service.gate,
        aircraft=service.aircraft,
        km=service.km,
    )


def late_by(random: Random, punctuality: float, *, storm: bool) -> int:
    late = random.random() >= punctuality * (0.25 if storm else 1)
    span = 180 if storm else 90
    minutes = 5 + int(random.random() ** 2 * span)
    return minutes if late else 0


def status_at_noon(
    departure: datetime, arrival: datetime, delay: int, *, luck: float, storm: bool
) -> str:
    late = timedelta(minutes=delay)
    if luck < (0.2 if storm else 0.012):
        return Status.CANCELLED
    if arrival + late <= NOW:
        return Status.DIVERTED if luck > 0.997 else Status.LANDED
    if departure + late <= NOW:
        return Status.DEPARTED
    if departure + late <= NOW + timedelta(minutes=40):
        return Status.BOARDING
    # Half a day ahead the desk knows of delays.
    if delay and departure <= NOW + timedelta(hours=12):
        return Status.DELAYED
    return Status.SCHEDULED


STORIES = {
    Incident.Kind.TECHNICAL: [
        "Warning light of a cargo door during taxi. The crew returned to the stand.",
        "Worn tyre found on the walk-round and replaced before departure.",
        "Weather radar failed its self-test. The spare unit was fitted.",
    ],
    Incident.Kind.WEATHER: [
        "Crosswind above the limit of the aircraft. Departure waited for the front to pass.",
        "De-icing took a second round, since snow went on falling.",
    ],
    Incident.Kind.BIRD_STRIKE: ["Bird hit the radome on final approach. Inspected, no damage."],
    Incident.Kind.MEDICAL: [
        "A passenger fainted during boarding and was seen by the airport's doctor.",
        "A doctor on board cared for a passenger with chest pain.",
    ],
    Incident.Kind.SECURITY: [
        "A bag was left at the gate. The area was closed for 20 minutes.",
        "A passenger without a valid document was taken off before departure.",
    ],
    Incident.Kind.BAGGAGE: [
        "The belt of the sorting hall stopped. 40 bags follow on later flights."
    ],
}
REPORTERS = ["A. Lindqvist", "B. Osei", "C. Duarte", "D. Weiss", "E. Marchetti", "F. Novak"]


def incidents(rows: Sequence[FlightRow]) -> list[IncidentRow]:
    """What happened until the desk's clock; more of the weather where there was a storm."""
    random = Random(f"{SEED}:incidents")
    past = [index for index, row in enumerate(rows) if row.scheduled_departure < NOW]
    chosen = sorted(random.sample(past, INCIDENTS), key=lambda i: rows[i].scheduled_departure)
    return [incident(random, index, rows[index]) for index in chosen]


def incident(random: Random, index: int, row: FlightRow) -> IncidentRow:
    stormy = (row.origin, (row.scheduled_departure - FIRST_DAY).days) in STORMS
    kind = Incident.Kind.WEATHER if stormy else random.choice(list(STORIES))
    reported = row.scheduled_departure - timedelta(minutes=random.randrange(5, 60))
    return IncidentRow(
        flight=index,
        kind=str(kind),
        severity=random.choices([1, 2, 3, 4], weights=[55, 30, 12, 3])[0],
        reported_at=reported,
        reported_by=random.choice(REPORTERS),
        description=random.choice(STORIES[kind]),
        closed=reported < NOW - timedelta(days=3) or random.random() < 0.4,
    )


def digest(rows: Iterable[object]) -> str:
    """A fingerprint of rows: equal on every machine, or something is not fixed."""
    total = hashlib.sha256()
    for row in rows:
        total.update(repr(row).encode())
    return total.hexdigest()
