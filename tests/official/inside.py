"""What the ORM knows, asked within the demo, and what somebody else changes meanwhile."""

from __future__ import annotations

from io import StringIO
from random import Random

from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db.models import Q
from django.test import RequestFactory

from demo_project.flights import models

#: Keys that no airport of the seed has any more, so that others may come and go in between.
GAP = 50


def prepare():
    """Somebody with all permissions who is not staff, somebody to be asked, and gaps of keys."""
    User.objects.create_user("traveller", is_staff=True)
    outsider = User.objects.create_user("outsider")
    outsider.user_permissions.set(Permission.objects.all())
    models.Airport.objects.filter(pk__in=gaps(), iata="").delete()


def gaps(last=28_000):
    return range(GAP, last, GAP)


def rows_of(username):
    """How many rows of each model the admin shows to somebody."""
    request = RequestFactory().get("/")
    request.user = User.objects.get(username=username)
    found = {}
    for model, model_admin in admin.site._registry.items():
        if model._meta.app_label == "flights" and model_admin.has_view_permission(request):
            found[model._meta.label_lower] = model_admin.get_queryset(request).count()
    return found


def airport_keys(last):
    return list(models.Airport.objects.filter(pk__lte=last).values_list("pk", flat=True))


def incidents():
    """The key of one that touches Germany, and of one that does not."""
    german = Q(airport__country__code="DE") | Q(flight__destination__country__code="DE")
    everywhere = models.Incident.objects
    return [
        everywhere.filter(german).earliest("pk").pk,
        everywhere.exclude(german).earliest("pk").pk,
    ]


def state_of(number, day):
    flight = models.Flight.objects.get(number=number, scheduled_departure__date=day)
    return [flight.status, flight.delay_minutes]


def run(*command):
    """What a management command writes."""
    written = StringIO()
    call_command(*command, stdout=written)
    return written.getvalue()


def come_and_go(step, last=28_000):
    """Airports appear anywhere among those up to `last` and behind them, some with equal heights,
    and are gone again.
    """
    random = Random(step)
    models.Airport.objects.filter(icao__startswith="#").delete()
    if step < 0:
        return 0
    free = set(random.sample(gaps(last), 12)) | {
        random.randrange(30_000, 40_000),
        -random.randrange(99),
    }
    taken = models.Airport.objects.filter(pk__in=free).values_list("pk", flat=True)
    free -= set(taken)
    models.Airport.objects.bulk_create(
        models.Airport(
            pk=pk,
            icao=f"#{at}",
            name="Nowhere",
            country_id=random.randrange(1, 250),
            elevation=random.choice([0, 0, 100, random.randrange(5_000)]),
            latitude=0,
            longitude=0,
            timezone="UTC",
        )
        for at, pk in enumerate(sorted(free))
    )
    return len(free)
