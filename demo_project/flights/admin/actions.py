"""What the desk does with selected flights."""

from __future__ import annotations

import csv
import logging

from django import forms
from django.contrib import admin, messages
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from demo_project.flights.admin.selection import Selection, intermediate_page, save
from demo_project.flights.models import Booking, Flight
from demo_project.flights.models.traffic import LONGEST_DELAY

logger = logging.getLogger(__name__)


class DelayForm(forms.Form):
    minutes = forms.IntegerField(
        min_value=1,
        max_value=LONGEST_DELAY,
        label="Minutes",
        help_text="Added to the delay that a flight already has.",
    )
    reason = forms.CharField(
        max_length=200, required=False, help_text="Kept in the history of each flight."
    )


class FlightActions(admin.ModelAdmin):
    actions = ["delay_flights", "cancel_flights", "passenger_manifest", "notify_passengers"]

    @admin.action(description="Delay selected flights…", permissions=["change"])
    @transaction.atomic
    def delay_flights(
        self, request: HttpRequest, flights: QuerySet[Flight]
    ) -> HttpResponse | None:
        """Add minutes to the delay of flights that have not departed."""
        selection = Selection(flights)
        form = DelayForm(request.POST if "post" in request.POST else None)
        if selection.waiting and not form.is_valid():
            return intermediate_page(self, request, selection, name="delay_flights", form=form)
        for flight in selection.waiting:
            minutes = flight.delay_minutes + form.cleaned_data["minutes"]
            flight.delay_minutes = min(minutes, LONGEST_DELAY)
            flight.status = Flight.Status.DELAYED
            save(self, request, flight, reason=form.cleaned_data["reason"])
        selection.report(self, request, done="Delayed")
        return None

    @admin.action(description="Cancel selected flights…", permissions=["change"])
    @transaction.atomic
    def cancel_flights(
        self, request: HttpRequest, flights: QuerySet[Flight]
    ) -> HttpResponse | None:
        """Cancel flights that have not departed. Their bookings stay, for the refund."""
        selection = Selection(flights)
        if selection.waiting and "post" not in request.POST:
            return intermediate_page(self, request, selection, name="cancel_flights")
        for flight in selection.waiting:
            flight.status = Flight.Status.CANCELLED
            flight.delay_minutes = 0
            save(self, request, flight)
        selection.report(self, request, done="Cancelled")
        return None

    @admin.action(description="Download passenger manifest", permissions=["people"])
    def passenger_manifest(self, request: HttpRequest, flights: QuerySet[Flight]) -> HttpResponse:
        """A CSV file of who sits where, in the order of flights and seats."""
        response = HttpResponse(content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="manifest.csv"'
        writer = csv.writer(response)
        writer.writerow(["flight", "departure", "from", "to", "seat", "passenger", "reference"])
        for booking in bookings_of(flights):
            flight = booking.flight
            writer.writerow(
                [
                    flight.number,
                    f"{flight.scheduled_departure:%Y-%m-%d %H:%M}",
                    flight.origin.iata,
                    flight.destination.iata,
                    booking.seat,
                    booking.passenger.name,
                    booking.reference,
                ]
            )
        return response

    passenger_manifest.mcp_read_only = True  # type: ignore[attr-defined]  # as Django's own

    @admin.action(description="Notify passengers by e-mail", permissions=["notify"])
    def notify_passengers(self, request: HttpRequest, flights: QuerySet[Flight]) -> None:
        """Write to everybody on board how their flight stands. Takes a while for many flights."""
        bookings = list(bookings_of(flights))
        # An assistant hears how far it is; a browser's request has nobody to tell.
        call = getattr(request, "mcp", None)
        for count, booking in enumerate(bookings, start=1):
            message(booking).send()
            if call is not None:
                call.progress(count, total=len(bookings))
            if count % 25 == 0 or count == len(bookings):
                logger.info("Notified %d of %d passengers", count, len(bookings))
        self.message_user(request, f"Notified {len(bookings)} passengers.", messages.SUCCESS)

    def has_people_permission(self, request: HttpRequest) -> bool:
        """For actions that show who is on board."""
        return request.user.has_perms(["flights.view_booking", "flights.view_passenger"])

    # One permission, since of several that an action names, any one is enough for Django.
    def has_notify_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request) and self.has_people_permission(request)


def message(booking: Booking) -> EmailMessage:
    flight = booking.flight
    status = flight.get_status_display()
    lines = [
        f"Dear {booking.passenger.name},",
        "",
        f"{flight.number} from {flight.origin.name} to {flight.destination.name}: {status}.",
    ]
    if flight.can_change:
        lines.append(
            f"It leaves at {flight.expected_departure:%H:%M} UTC on "
            f"{flight.expected_departure:%d %B} from gate {flight.gate}. "
            f"Your seat: {booking.seat}."
        )
    return EmailMessage(
        f"Your flight {flight.number}: {status}",
        "\n".join(lines),
        to=[booking.passenger.email],
    )


def bookings_of(flights: QuerySet[Flight]) -> QuerySet[Booking]:
    return (
        Booking.objects.filter(flight__in=flights.order_by().values("pk"))
        .select_related("passenger", "flight__origin", "flight__destination")
        .order_by("flight__scheduled_departure", "flight__number", "seat")
    )
