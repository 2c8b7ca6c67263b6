from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from demo_project.flights.rights import country_of


class NarrowedAdmin(admin.ModelAdmin):
    """Shows a user with a profile only what touches the country of the profile."""

    #: Paths to a country. A row is shown where one of them leads to the user's.
    country_paths: Sequence[str] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        country = country_of(request)
        if country is None:
            return rows
        touching = Q()
        for path in self.country_paths:
            touching |= Q(**{path: country.pk})
        return rows.filter(touching)
