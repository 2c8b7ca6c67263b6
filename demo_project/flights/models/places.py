from __future__ import annotations

from django.db import models
from django.db.models import Q


class Country(models.Model):
    code = models.CharField(max_length=2, unique=True, help_text="ISO 3166-1, two letters: DE.")
    name = models.CharField(max_length=60, unique=True)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "countries"

    def __str__(self) -> str:
        return self.name


class Airport(models.Model):
    icao = models.CharField(
        "ICAO", max_length=4, unique=True, help_text="Four letters or digits: EDDF."
    )
    iata = models.CharField(
        "IATA",
        max_length=3,
        blank=True,
        help_text="Three letters: FRA. Small airfields have none.",
    )
    name = models.CharField(max_length=80, db_index=True)
    city = models.CharField(max_length=60, blank=True, db_index=True)
    subdivision = models.CharField(
        max_length=60, blank=True, help_text="State, province or region."
    )
    country = models.ForeignKey(Country, on_delete=models.PROTECT, related_name="airports")
    elevation = models.IntegerField(help_text="Feet above mean sea level.")
    latitude = models.FloatField(help_text="Degrees, north is positive.")
    longitude = models.FloatField(help_text="Degrees, east is positive.")
    timezone = models.CharField(max_length=40, help_text="Name in the tz database: Europe/Berlin.")

    class Meta:
        ordering = ["icao"]
        constraints = [
            models.UniqueConstraint(
                fields=["iata"],
                condition=~Q(iata=""),
                name="one_airport_for_an_iata_code",
                violation_error_message="Another airport has this IATA code.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.iata or self.icao} {self.name}"


class Airline(models.Model):
    iata = models.CharField("IATA", max_length=2, unique=True, help_text="Starts flight numbers.")
    icao = models.CharField("ICAO", max_length=3, unique=True)
    name = models.CharField(max_length=60, unique=True)
    country = models.ForeignKey(
        Country,
        on_delete=models.PROTECT,
        related_name="airlines",
        help_text="Where it is at home.",
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
