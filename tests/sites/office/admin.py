from __future__ import annotations

from django.contrib import admin

from tests.shop.models import Customer, Order


class OfficeSite(admin.AdminSite):
    """For people of the group "office", whoever is staff elsewhere."""

    def has_permission(self, request):
        return request.user.is_active and request.user.groups.filter(name="office").exists()


office = OfficeSite(name="office")


@admin.register(Order, site=office)
class OfficeOrderAdmin(admin.ModelAdmin):
    """New orders only, and nothing of their totals."""

    def get_queryset(self, request):
        return super().get_queryset(request).filter(status=Order.Status.NEW)

    def get_fields(self, request, obj=None):
        return ["number", "customer", "status"]

    def get_list_display(self, request):
        return ["number", "customer"]


@admin.register(Customer, site=office)
class OfficeCustomerAdmin(admin.ModelAdmin):
    def get_queryset(self, request):
        return super().get_queryset(request).filter(country="FR")
