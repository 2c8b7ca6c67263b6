from __future__ import annotations

from django.db import models
from simple_history.models import HistoricalRecords


class Versioned(models.Model):
    """Kept in versions by django-reversion."""

    name = models.CharField(max_length=20)
    size = models.IntegerField(default=0)

    def __str__(self):
        return self.name


class Tracked(models.Model):
    """With a row for each change by django-simple-history."""

    name = models.CharField(max_length=20)
    size = models.IntegerField(default=0)
    history = HistoricalRecords()

    def __str__(self):
        return self.name


class Guarded(models.Model):
    """With rights on single objects by django-guardian."""

    name = models.CharField(max_length=20)
    size = models.IntegerField(default=0)

    def __str__(self):
        return self.name
