"""Invented passengers and what they booked."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from demo_project.flights.seeding.network import DATA
from demo_project.flights.seeding.traffic import SEED, FlightRow

PASSENGERS = 8_000
SEATS = [f"{row}{letter}" for row in range(1, 33) for letter in "ABCDEF"]
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
    """Two to six on each flight: about 20,000."""
    random = Random(f"{SEED}:bookings")
    references = new_references(random)
    found: list[BookingRow] = []
    for index, flight in enumerate(flights):
        count = random.randrange(2, 7)
        people = random.sample(range(PASSENGERS), count)
        for who, seat in zip(people, random.sample(SEATS, count), strict=True):
            cents = 4_900 + round(flight.km * random.uniform(4, 12))
            found.append(
                BookingRow(
                    flight=index,
                    passenger=who,
                    seat=seat,
                    price=Decimal(cents) / 100,
                    reference=next(references),
                )
            )
    return found


def new_references(random: Random) -> Iterator[str]:
    taken: set[str] = set()
    while True:
        reference = "".join(random.choices(ALPHABET, k=6))
        if reference not in taken:
            taken.add(reference)
            yield reference
