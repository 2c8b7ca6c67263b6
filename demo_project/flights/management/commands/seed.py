from __future__ import annotations

from time import perf_counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from demo_project import clock
from demo_project.flights.models import Airport, Booking, Flight
from demo_project.flights.seeding.load import is_empty, load_everything, move_to
from demo_project.flights.seeding.users import create_users


class Command(BaseCommand):
    help = (
        "Fill the demo's database with airports, flights and users, for the day of today or of "
        "DEMO_TODAY. A second run moves the flights to its day, and changes nothing else."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        started = perf_counter()
        try:
            day = clock.day_of_start()
        except ValueError as error:
            raise CommandError("DEMO_TODAY is not a day such as 2026-11-18.") from error
        empty = is_empty()
        if empty:
            load_everything(self.say)
        moved = move_to(day)
        create_users()
        seconds = perf_counter() - started
        if empty:
            self.say(
                f"Seeded {Airport.objects.count():,} airports, {Flight.objects.count():,} flights "
                f"and {Booking.objects.count():,} bookings in {seconds:.1f} s."
            )
        else:
            self.say("The database is already seeded.")
            if moved:
                self.say(f"Moved its flights by {moved.days} days.")
        self.say(f"The desk's clock stands at {day} 12:00 UTC.")

    def say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()
