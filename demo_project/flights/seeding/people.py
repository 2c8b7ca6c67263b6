"""Invented passengers and what they booked."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from demo_project.flights.seeding.network import DATA
from demo_project.flights.seeding.traffic import SEED, TODAY, FlightRow, seats_taken

PASSENGERS = 32_000
#: What is sold of the seats: for flights of the desk's day, of tomorrow and so on.
SOLD = [1, 0.9, 0.45, 0.2]
# No 0, O, 1 and I: references are read out on the phone.
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

FIRST = (DATA / "first_names.txt").read_text(encoding="utf-8").splitlines()
LAST = (DATA / "last_names.txt").read_text(encoding="utf-8").splitlines()
NOTES = [
    "Vegetarian meal.",
    "Wheelchair to the gate.",
    "Travels with an infant.",
    "Peanut allergy.",
    "Unaccompanied minor, hand over at the gate.",
]


@dataclass(frozen=True, kw_only=True)
class PassengerRow:
    name: str
    email: str
    passport_number: str
    notes: str


@dataclass(frozen=True, kw_only=True)
class BookingRow:
    #: Indexes among all flights and passengers.
    flight: int
    passenger: int
    seat: str
    price: Decimal
    reference: str


def passengers() -> list[PassengerRow]:
    random = Random(f"{SEED}:passengers")
    numbers = random.sample(range(10**8), PASSENGERS)
    return [passenger(random, index, number) for index, number in enumerate(numbers, start=1)]


def passenger(random: Random, index: int, number: int) -> PassengerRow:
    name = f"{random.choice(FIRST)} {random.choice(LAST)}"
    return PassengerRow(
        name=name,
        email=f"{mailbox(name)}.{index}@mail.example",
        passport_number=f"{random.choice('CFGHJKLMNPRTVWXYZ')}{number:08}",
        notes=random.choice(NOTES) if random.random() < 0.08 else "",
    )


def mailbox(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.replace("ø", "o"))
    return plain.encode("ascii", "ignore").decode().lower().replace(" ", ".")


def bookings(flights: Sequence[FlightRow]) -> list[BookingRow]:
    """From the desk's day on: about 75,000. Nobody flies twice on a day."""
    random = Random(f"{SEED}:bookings")
    references = new_references(random)
    shuffled: dict[int, list[int]] = {}
    rows: list[BookingRow] = []
    for index, flight in enumerate(flights):
        ahead = (flight.scheduled_departure - TODAY).days
        if ahead < 0:
            continue
        if ahead not in shuffled:
            shuffled[ahead] = random.sample(range(PASSENGERS), PASSENGERS)
        cents = 4_900 + round(flight.km * random.uniform(4, 8))
        seats = random.sample(flight.aircraft.seat_names(), booked(random, flight, ahead))
        rows += [
            BookingRow(
                flight=index,
                passenger=shuffled[ahead].pop(),
                seat=seat,
                price=Decimal(round(cents * random.uniform(0.8, 1.5))) / 100,
                reference=next(references),
            )
            for seat in seats
        ]
    return rows


def booked(random: Random, flight: FlightRow, ahead: int) -> int:
    seats = flight.aircraft.seats
    if flight.boarded is not None:
        # Some do not come.
        return min(seats, flight.boarded + random.randrange(4))
    return round(seats * seats_taken(random) * SOLD[min(ahead, len(SOLD) - 1)])


def new_references(random: Random) -> Iterator[str]:
    taken: set[str] = set()
    while True:
        reference = "".join(random.choices(ALPHABET, k=6))
        if reference not in taken:
            taken.add(reference)
            yield reference
