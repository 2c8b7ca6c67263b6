from __future__ import annotations

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db import models

from demo_project.flights.admin.narrowed import NarrowedAdmin
from demo_project.flights.models import Booking, Passenger, Profile


class BookingInline(admin.TabularInline):
    model = Booking
    fields = ["flight", "seat", "price", "reference"]
    autocomplete_fields = ["flight"]
    extra = 0
    # The admin's own inputs are 20em wide: too much for a seat.
    formfield_overrides = {
        models.CharField: {"widget": forms.TextInput(attrs={"size": 7})},
        models.DecimalField: {"widget": forms.NumberInput(attrs={"step": "0.01"})},
    }


@admin.register(Passenger)
class PassengerAdmin(admin.ModelAdmin):
    list_display = ["name", "email", "passport_number", "notes"]
    list_filter = [("notes", admin.EmptyFieldListFilter)]
    search_fields = ["name", "email", "=passport_number"]
    inlines = [BookingInline]


@admin.register(Booking)
class BookingAdmin(NarrowedAdmin):
    country_paths = ["flight__origin__country", "flight__destination__country"]
    list_display = ["reference", "flight", "passenger", "seat", "price"]
    list_filter = ["flight__airline"]
    list_select_related = ["flight", "passenger"]
    date_hierarchy = "flight__scheduled_departure"
    search_fields = ["=reference", "passenger__name", "flight__number"]
    autocomplete_fields = ["flight", "passenger"]


class ProfileInline(admin.StackedInline):
    model = Profile
    autocomplete_fields = ["country"]
    verbose_name = "country"
    verbose_name_plural = "narrowed to a country"


admin.site.unregister(User)


@admin.register(User)
class DeskUserAdmin(UserAdmin):
    inlines = [ProfileInline]
