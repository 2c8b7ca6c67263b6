from __future__ import annotations

from django.contrib import admin

from tests.shop.models import Customer, Ledger, Order


@admin.action(permissions=["change"])
def greet(modeladmin, request, queryset):
    modeladmin.message_user(request, f"Greeted {queryset.count()}.")


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    list_display = ["name", "country"]
    search_fields = ["name"]
    mcp_expose = True
    mcp_fields = ["id", "name", "country"]
    actions = [greet]
    mcp_actions = ["greet"]


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ["number", "customer", "status", "total"]


@admin.register(Ledger)
class LedgerAdmin(admin.ModelAdmin):
    list_display = ["amount"]
