from __future__ import annotations

from django.contrib import admin

from demo_project.flights.admin.narrowed import NarrowedAdmin
from demo_project.flights.models import Airline, Airport, Country


@admin.register(Country)
class CountryAdmin(NarrowedAdmin):
    country_paths = ["pk"]
    list_display = ["name", "code"]
    search_fields = ["name", "=code"]


@admin.register(Airport)
class AirportAdmin(NarrowedAdmin):
    country_paths = ["country"]
    list_display = ["icao", "iata", "name", "city", "subdivision", "country", "elevation"]
    list_filter = [("iata", admin.EmptyFieldListFilter)]
    list_select_related = ["country"]
    search_fields = ["=icao", "=iata", "name", "city", "country__name"]
    autocomplete_fields = ["country"]
    show_full_result_count = False
    fieldsets = [
        (None, {"fields": [("icao", "iata"), "name"]}),
        ("Where", {"fields": ["city", "subdivision", "country", "timezone"]}),
        ("Position", {"fields": [("latitude", "longitude"), "elevation"]}),
    ]


@admin.register(Airline)
class AirlineAdmin(admin.ModelAdmin):
    list_display = ["name", "iata", "icao", "country"]
    list_filter = [("country", admin.RelatedOnlyFieldListFilter)]
    list_select_related = ["country"]
    search_fields = ["name", "=iata", "=icao"]
    autocomplete_fields = ["country"]
