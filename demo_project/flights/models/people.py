from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models

from demo_project.flights.models.places import Country
from demo_project.flights.models.traffic import Flight


class Passenger(models.Model):
    name = models.CharField(max_length=80, db_index=True)
    email = models.EmailField("e-mail", unique=True)
    passport_number = models.CharField(max_length=12, unique=True)
    notes = models.TextField(blank=True, help_text="What the crew should know.")

    class Meta:
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name


class Booking(models.Model):
    # The constraint's index starts with this column.
    flight = models.ForeignKey(
        Flight, on_delete=models.CASCADE, related_name="bookings", db_index=False
    )
    passenger = models.ForeignKey(Passenger, on_delete=models.PROTECT, related_name="bookings")
    seat = models.CharField(max_length=3, help_text="Row and letter: 12C.")
    price = models.DecimalField(
        max_digits=8, decimal_places=2, validators=[MinValueValidator(0)], help_text="Euros."
    )
    reference = models.CharField(max_length=6, unique=True, help_text="Six letters and digits.")

    class Meta:
        ordering = ["flight_id", "seat"]
        constraints = [
            models.UniqueConstraint(
                fields=["flight", "seat"],
                name="one_booking_for_a_seat",
                violation_error_message="This seat of the flight is booked already.",
            )
        ]

    def __str__(self) -> str:
        return self.reference


class Profile(models.Model):
    """Narrows a member of staff to one country. Who has none sees them all."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="profile"
    )
    country = models.ForeignKey(
        Country,
        on_delete=models.CASCADE,
        related_name="profiles",
        help_text="The admin shows only what touches this country.",
    )

    class Meta:
        ordering = ["user_id"]

    def __str__(self) -> str:
        return f"{self.user}: {self.country}"
