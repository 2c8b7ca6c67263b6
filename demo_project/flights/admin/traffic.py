from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from demo_project.flights.admin.actions import FlightActions
from demo_project.flights.admin.narrowed import NarrowedAdmin
from demo_project.flights.models import Aircraft, Flight, Incident, Tag


@admin.register(Aircraft)
class AircraftAdmin(admin.ModelAdmin):
    list_display = ["name", "seats"]
    search_fields = ["name"]


@admin.register(Flight)
class FlightAdmin(FlightActions, NarrowedAdmin):
    country_paths = ["origin__country", "destination__country"]
    list_display = [
        "number",
        "route",
        "scheduled_departure",
        "status",
        "delay_minutes",
        "gate",
    ]
    list_filter = ["status", "airline"]
    list_select_related = ["airline", "aircraft", "origin", "destination"]
    list_per_page = 50
    date_hierarchy = "scheduled_departure"
    search_fields = ["number", "=origin__iata", "=destination__iata", "gate"]
    search_help_text = "Flight number, airport (FRA) or gate."
    autocomplete_fields = ["airline", "aircraft", "origin", "destination"]
    fieldsets = [
        (None, {"fields": [("number", "airline"), "aircraft"]}),
        ("Route", {"fields": ["origin", "destination"]}),
        ("Schedule", {"fields": ["scheduled_departure", "scheduled_arrival"]}),
        ("State", {"fields": ["status", "delay_minutes", "gate", "boarded"]}),
    ]

    @admin.display(description="route", ordering="origin__iata")
    def route(self, flight: Flight) -> str:
        return f"{flight.origin.iata}\u00a0→\u00a0{flight.destination.iata}"


@admin.register(Tag)
class TagAdmin(admin.ModelAdmin):
    list_display = ["name"]
    search_fields = ["name"]


@admin.register(Incident)
class IncidentAdmin(NarrowedAdmin):
    country_paths = ["airport__country", "flight__destination__country"]
    list_display = ["kind", "severity", "where", "flight", "reported_at", "closed"]
    list_filter = ["closed", "severity", "kind", "tags"]
    list_select_related = ["airport", "flight"]
    date_hierarchy = "reported_at"
    search_fields = ["description", "reported_by", "=airport__iata", "flight__number"]
    autocomplete_fields = ["flight", "airport"]
    filter_horizontal = ["tags"]
    actions = ["close_incidents"]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Whoever fills in the form reports the incident, unless they name somebody else."""
        reporter = {"reported_by": request.user.get_username()}
        return {**reporter, **super().get_changeform_initial_data(request)}

    @admin.display(description="airport", ordering="airport__iata")
    def where(self, incident: Incident) -> str:
        return incident.airport.iata or incident.airport.icao

    @admin.action(description="Close selected incidents", permissions=["change"])
    def close_incidents(self, request: HttpRequest, incidents: QuerySet[Incident]) -> None:
        """Mark as closed: nothing is left to be done."""
        open_incidents = list(incidents.filter(closed=False))
        for incident in open_incidents:
            incident.closed = True
            incident.save(update_fields=["closed"])
            change: list[dict[str, Any]] = [{"changed": {"fields": ["closed"]}}]
            self.log_change(request, incident, change)
        self.message_user(request, f"Closed {len(open_incidents)} incidents.", messages.SUCCESS)
