from __future__ import annotations

from time import perf_counter
from typing import Any

from django.core.management.base import BaseCommand

from demo_project.flights.models import Airport, Booking, Flight
from demo_project.flights.seeding.load import load_everything
from demo_project.flights.seeding.users import create_users


class Command(BaseCommand):
    help = (
        "Fill the demo's database with airports, flights and users. A second run changes nothing."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        started = perf_counter()
        loaded = load_everything()
        create_users()
        seconds = perf_counter() - started
        if loaded:
            self.stdout.write(
                f"Seeded {Airport.objects.count():,} airports, {Flight.objects.count():,} flights "
                f"and {Booking.objects.count():,} bookings in {seconds:.1f} s."
            )
        else:
            self.stdout.write("The database is already seeded.")
