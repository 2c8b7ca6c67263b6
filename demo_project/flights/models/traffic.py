from __future__ import annotations

from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from demo_project.flights.models.places import Airline, Airport

#: Nobody delays a flight by more than a day: it gets cancelled.
LONGEST_DELAY = 24 * 60
TO_ITSELF = "A flight leaves one airport and arrives at another."


class Aircraft(models.Model):
    """A type of aircraft. All of a type have the same number of seats."""

    name = models.CharField("type", max_length=20, unique=True, help_text="As A320neo.")
    seats = models.PositiveSmallIntegerField(
        validators=[MinValueValidator(1)], help_text="For passengers."
    )

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "aircraft"

    def __str__(self) -> str:
        return self.name


class Flight(models.Model):
    class Status(models.TextChoices):
        SCHEDULED = "scheduled", "Scheduled"
        DELAYED = "delayed", "Delayed"
        BOARDING = "boarding", "Boarding"
        DEPARTED = "departed", "Departed"
        LANDED = "landed", "Landed"
        DIVERTED = "diverted", "Diverted"
        CANCELLED = "cancelled", "Cancelled"

    #: A flight in one of these can still be delayed or cancelled.
    WAITING = (Status.SCHEDULED, Status.DELAYED, Status.BOARDING)

    number = models.CharField(max_length=6, help_text="Airline and number, no space: RF100.")
    # The indexes below start with these columns.
    airline = models.ForeignKey(
        Airline, on_delete=models.PROTECT, related_name="flights", db_index=False
    )
    origin = models.ForeignKey(
        Airport, on_delete=models.PROTECT, related_name="departures", db_index=False
    )
    destination = models.ForeignKey(
        Airport, on_delete=models.PROTECT, related_name="arrivals", db_index=False
    )
    scheduled_departure = models.DateTimeField(db_index=True, help_text="UTC.")
    scheduled_arrival = models.DateTimeField(help_text="UTC.")
    status = models.CharField(max_length=10, choices=Status, default=Status.SCHEDULED)
    delay_minutes = models.PositiveSmallIntegerField(
        "delay",
        default=0,
        validators=[MaxValueValidator(LONGEST_DELAY)],
        help_text="Minutes after the schedule, on departure.",
    )
    gate = models.CharField(max_length=4, blank=True, help_text="At the origin: A12.")
    aircraft = models.ForeignKey(Aircraft, on_delete=models.PROTECT, related_name="flights")
    boarded = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Passengers on board, from departure on."
    )

    class Meta:
        ordering = ["scheduled_departure", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["number", "scheduled_departure"],
                name="one_flight_for_number_and_time",
                violation_error_message="A flight of this number leaves at this time already.",
            ),
            models.CheckConstraint(
                condition=Q(scheduled_arrival__gt=F("scheduled_departure")),
                name="a_flight_arrives_after_it_departs",
                violation_error_message="The arrival is not after the departure. Both are UTC.",
            ),
            models.CheckConstraint(
                condition=~Q(origin=F("destination")),
                name="a_flight_leads_to_another_airport",
                violation_error_message=TO_ITSELF,
            ),
        ]
        indexes = [
            models.Index(fields=["airline", "scheduled_departure"], name="flight_of_airline"),
            models.Index(fields=["origin", "scheduled_departure"], name="flight_from_airport"),
            models.Index(fields=["destination", "scheduled_arrival"], name="flight_to_airport"),
            models.Index(fields=["status", "scheduled_departure"], name="flight_in_status"),
        ]

    def __str__(self) -> str:
        return f"{self.number} of {self.scheduled_departure:%Y-%m-%d}"

    def clean(self) -> None:
        """Say what is wrong at its field. What the constraint says is about no field."""
        if self.origin_id and self.origin_id == self.destination_id:
            raise ValidationError({"destination": TO_ITSELF})

    @property
    def expected_departure(self) -> datetime:
        return self.scheduled_departure + timedelta(minutes=self.delay_minutes)

    @property
    def can_change(self) -> bool:
        """Whether it is still on the ground."""
        return self.status in self.WAITING


class Tag(models.Model):
    """A word by which staff find incidents again."""

    name = models.CharField(max_length=40, unique=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Incident(models.Model):
    class Kind(models.TextChoices):
        TECHNICAL = "technical", "Technical"
        WEATHER = "weather", "Weather"
        BIRD_STRIKE = "bird_strike", "Bird strike"
        MEDICAL = "medical", "Medical"
        SECURITY = "security", "Security"
        BAGGAGE = "baggage", "Baggage"

    class Severity(models.IntegerChoices):
        MINOR = 1, "Minor"
        MODERATE = 2, "Moderate"
        MAJOR = 3, "Major"
        CRITICAL = 4, "Critical"

    flight = models.ForeignKey(
        Flight,
        on_delete=models.CASCADE,
        related_name="incidents",
        null=True,
        blank=True,
        help_text="Empty for what concerns the whole airport.",
    )
    airport = models.ForeignKey(Airport, on_delete=models.PROTECT, related_name="incidents")
    kind = models.CharField(max_length=12, choices=Kind, db_index=True)
    severity = models.PositiveSmallIntegerField(choices=Severity, default=Severity.MINOR)
    reported_at = models.DateTimeField(db_index=True, help_text="UTC.")
    reported_by = models.CharField(
        max_length=80, help_text="Stays within the desk: reports are confidential."
    )
    description = models.TextField()
    report = models.FileField(upload_to="incidents/", blank=True)
    closed = models.BooleanField(default=False, help_text="Nothing is left to be done.")
    tags = models.ManyToManyField(Tag, blank=True, related_name="incidents")

    class Meta:
        ordering = ["-reported_at", "-id"]
        indexes = [models.Index(fields=["closed", "severity"], name="open_incidents")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.reported_at:%Y-%m-%d %H:%M}"
