"""A depot whose admin has an action of every kind."""

from __future__ import annotations

from django.db import models


class Parcel(models.Model):
    class Status(models.TextChoices):
        WAITING = "waiting", "Waiting"
        SHIPPED = "shipped", "Shipped"
        LOST = "lost", "Lost"

    number = models.CharField(max_length=20, unique=True)
    status = models.CharField(max_length=20, choices=Status, default=Status.WAITING)
    carrier = models.CharField(max_length=20, blank=True)
    tenant = models.CharField(max_length=20, blank=True)
    is_archived = models.BooleanField(default=False)

    def __str__(self):
        return f"parcel {self.number} of {self.tenant}"


class Van(models.Model):
    """Its admin has buttons, of django-object-actions, and exports, of django-import-export."""

    plate = models.CharField(max_length=20)
    kilometres = models.IntegerField(default=0)
    is_hired = models.BooleanField(default=False)


class Driver(models.Model):
    """Nothing in its admin is anybody's own: who may do what never changes within a second."""

    name = models.CharField(max_length=20)
