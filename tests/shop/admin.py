from __future__ import annotations

from django.contrib import admin

from tests.shop.models import Customer, Ledger, Order


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    list_display = ["name", "country"]
    search_fields = ["name"]
    mcp_expose = True
    mcp_fields = ["id", "name", "country"]


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ["number", "customer", "status", "total"]


@admin.register(Ledger)
class LedgerAdmin(admin.ModelAdmin):
    list_display = ["amount"]
