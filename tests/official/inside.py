"""What the ORM knows, asked within the demo, and what somebody else changes meanwhile."""

from __future__ import annotations

from io import StringIO

from django.contrib.auth.models import User
from django.core.management import call_command

from demo_project.flights import models


def prepare():
    """Somebody to be asked."""
    User.objects.create_user("traveller", is_staff=True)


def state_of(number, day):
    flight = models.Flight.objects.get(number=number, scheduled_departure__date=day)
    return [flight.status, flight.delay_minutes]


def run(*command):
    """What a management command writes."""
    written = StringIO()
    call_command(*command, stdout=written)
    return written.getvalue()
