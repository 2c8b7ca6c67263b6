"""What every process must know about changes of rights and exposures."""

from __future__ import annotations

from django.db.models import BigIntegerField, CharField, Model

from mcp_django.principal import DEFAULT_SERVER


class ExposureGeneration(Model):
    """A number that rises whenever something kept in memory may have become wrong."""

    server = CharField(max_length=50, unique=True, default=DEFAULT_SERVER)
    number = BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.server}: {self.number}"
