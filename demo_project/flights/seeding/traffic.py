"""The flights and incidents of three weeks, the same on every machine but for their day."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from demo_project import clock
from demo_project.flights.models import Flight, Incident
from demo_project.flights.seeding.network import AircraftRow, Service, services

SEED = 20261102
DAYS = clock.PAST + 1 + clock.FUTURE
#: The desk's clock stands here while the rows are made. `load` moves them afterwards.
NOW = clock.noon(clock.MADE_FOR)
TODAY = NOW - timedelta(hours=12)
FIRST_DAY = TODAY - timedelta(days=clock.PAST)
#: Airports where on one day (counted from the first) nothing went well.
STORMS = {("FRA", 6), ("MUC", 6), ("LHR", 10), ("AMS", 10), ("ORD", 13), ("JFK", 13)}
INCIDENTS = 240
#: Minutes. Each longer delay that the desk knows of has an incident.
EXPLAINED = 75

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
    aircraft: AircraftRow
    #: None: it has not departed.
    boarded: int | None
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
    tags: tuple[str, ...]


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
    share = seats_taken(random)
    left = status in (Status.DEPARTED, Status.LANDED, Status.DIVERTED)
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
        boarded=round(share * service.aircraft.seats) if left else None,
        km=service.km,
    )


def seats_taken(random: Random) -> float:
    """Return a share of all seats, 1 for a full aircraft."""
    return min(1, random.triangular(0.35, 1.05, 0.85))


def late_by(random: Random, punctuality: float, *, storm: bool) -> int:
    if random.random() < 0.004:
        return random.randrange(150, 420)
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
        "Lightning near the apron. Nobody was allowed outside, so loading stopped.",
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
REASONS = {
    Incident.Kind.TECHNICAL: [
        "Hydraulic leak at the main gear. The aircraft was replaced by a spare one",
        "The engine did not start. A mechanic replaced the starter valve",
        "A lift truck touched the fuselage. The dent was measured and released",
    ],
    Incident.Kind.BIRD_STRIKE: ["Bird in an engine on the way in. It was inspected by borescope"],
    Incident.Kind.SECURITY: ["The terminal was cleared after an alarm. All were screened again"],
    Incident.Kind.BAGGAGE: ["Bags of a passenger who did not board had to be unloaded"],
}
STORM = "Thunderstorms over {airport}. Departures and arrivals were stopped"
REPORTERS = ["A. Lindqvist", "B. Osei", "C. Duarte", "D. Weiss", "E. Marchetti", "F. Novak"]
TAGS = ["crew hours", "follow-up with the airport", "press", "spare part"]
#: From how many minutes on. Nobody is owed money for a storm.
TAGS_OF_DELAYS = {"missed connections": 120, "compensation": 180}


def incidents(rows: Sequence[FlightRow]) -> list[IncidentRow]:
    """What happened until the desk's clock: a reason for each long delay, and smaller things."""
    random = Random(f"{SEED}:incidents")
    late = {index for index, row in enumerate(rows) if row.delay_minutes > EXPLAINED}
    past = [
        index
        for index, row in enumerate(rows)
        if row.scheduled_departure < NOW and row.status != Status.CANCELLED and index not in late
    ]
    chosen = [*late, *random.sample(past, INCIDENTS - len(late))]
    chosen.sort(key=lambda index: (rows[index].scheduled_departure, index))
    return [
        (explanation if index in late else incident)(random, index, rows[index])
        for index in chosen
    ]


def incident(random: Random, index: int, row: FlightRow) -> IncidentRow:
    kind = Incident.Kind.WEATHER if stormy_end(row) else random.choice(list(STORIES))
    reported = row.scheduled_departure - timedelta(minutes=random.randrange(5, 60))
    return IncidentRow(
        flight=index,
        kind=str(kind),
        severity=random.choices([1, 2, 3, 4], weights=[60, 30, 8, 2])[0],
        reported_at=reported,
        reported_by=random.choice(REPORTERS),
        description=random.choice(STORIES[kind]),
        closed=reported < NOW - timedelta(days=3) or random.random() < 0.4,
        tags=tuple(random.sample(TAGS, random.choices([0, 1, 2], weights=[60, 30, 10])[0])),
    )


def explanation(random: Random, index: int, row: FlightRow) -> IncidentRow:
    """Return what made a flight late for so long."""
    airport = stormy_end(row)
    kind = Incident.Kind.WEATHER if airport else random.choice(list(REASONS))
    reason = STORM.format(airport=airport) if airport else random.choice(REASONS[kind])
    reported = row.scheduled_departure - timedelta(minutes=random.randrange(5, 60))
    tags = [
        name
        for name, minutes in TAGS_OF_DELAYS.items()
        if row.delay_minutes >= minutes and not (airport and name == "compensation")
    ]
    return IncidentRow(
        flight=index,
        kind=str(kind),
        severity=2 if row.delay_minutes < 120 else 3,
        reported_at=min(reported, NOW - timedelta(minutes=random.randrange(5, 60))),
        reported_by=random.choice(REPORTERS),
        description=f"{reason}. Delay: {row.delay_minutes} minutes.",
        closed=reported < TODAY and random.random() < (0.6 if tags else 0.9),
        tags=tuple(tags),
    )


def stormy_end(row: FlightRow) -> str:
    """Return the airport of the flight where nothing went well on its day, or nothing."""
    day = (row.scheduled_departure - FIRST_DAY).days
    return next((one for one in (row.origin, row.destination) if (one, day) in STORMS), "")


def digest(rows: Iterable[object]) -> str:
    """A fingerprint of rows: equal on every machine, or something is not fixed."""
    total = hashlib.sha256()
    for row in rows:
        total.update(repr(row).encode())
    return total.hexdigest()
