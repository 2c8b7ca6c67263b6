from __future__ import annotations

from django.contrib import admin

from tests.sites.tenancy.models import Delivery


@admin.register(Delivery)
class DeliveryAdmin(admin.ModelAdmin):
    list_display = ["name"]
