"""The admin of the depot: a site of its own, which tests name in ADMIN_SITES."""

from __future__ import annotations

from django import forms
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.contrib.admin.helpers import ActionForm
from django.http import HttpResponseRedirect
from django.urls import path, reverse
from django_object_actions import DjangoObjectActions
from django_object_actions import action as button
from import_export.admin import ExportActionModelAdmin

from tests.depot import page_actions  # noqa: F401  it offers some
from tests.depot.actions import OFFERED
from tests.depot.models import Driver, Parcel, Van


class DepotSite(AdminSite):
    def get_urls(self):
        return [path("stamp/", self.admin_view(self.stamp), name="stamp"), *super().get_urls()]

    def stamp(self, request):
        rows = self._registry[Parcel].get_queryset(request)
        stamp = request.POST["stamp"]
        count = rows.filter(pk__in=request.POST.getlist("parcel")).update(carrier=stamp)
        self._registry[Parcel].message_user(request, f"Stamped {count} with {stamp}.")
        return HttpResponseRedirect(reverse("depot:depot_parcel_changelist"))


site = DepotSite(name="depot")


class ArchivedFilter(admin.SimpleListFilter):
    """Hides what is archived, unless one asks for it."""

    title = parameter_name = "archived"

    def lookups(self, request, model_admin):
        return [("all", "All")]

    def queryset(self, request, queryset):
        return queryset if self.value() else queryset.filter(is_archived=False)


@admin.register(Parcel, site=site)
class ParcelAdmin(admin.ModelAdmin):
    list_display = ["number", "status"]
    list_filter = [ArchivedFilter]
    actions = OFFERED
    mcp_expose = True
    mcp_fields = ["id", "number", "status", "carrier"]
    mcp_actions = [*(one.__name__ for one in OFFERED), "delete_selected"]

    def get_queryset(self, request):
        rows = super().get_queryset(request)
        tenants = list(request.user.groups.values_list("name", flat=True))
        return rows.filter(tenant__in=tenants) if tenants else rows

    def has_lose_permission(self, request):
        return request.user.is_superuser


class ReasonForm(ActionForm):
    reason = forms.CharField(max_length=20)
    weight = forms.DecimalField(required=False, localize=True)


@admin.register(Driver, site=site)
class DriverAdmin(admin.ModelAdmin):
    actions = ["rename", "praise"]
    action_form = ReasonForm
    mcp_expose = True
    mcp_actions = ["rename"]

    @admin.action(permissions=["change"])
    def rename(self, request, queryset):
        queryset.update(name=request.POST["reason"])
        self.message_user(request, f"Renamed, {request.POST.get('weight', 'no weight')}.")

    @admin.action(permissions=["change"])
    def praise(self, request, queryset):
        """Not switched on."""


@admin.register(Van, site=site)
class VanAdmin(DjangoObjectActions, ExportActionModelAdmin):
    change_actions = ["drive", "sell", "return_it", "look_at"]
    changelist_actions = ["hire", "close_down"]
    mcp_expose = True
    mcp_actions = [*change_actions, *changelist_actions, "export_admin_action"]

    def get_queryset(self, request):
        rows = super().get_queryset(request)
        return rows if request.user.is_superuser else rows.exclude(plate="SECRET")

    def get_change_actions(self, request, object_id, form_url):
        van = Van.objects.get(pk=object_id)
        return [one for one in self.change_actions if van.is_hired or one != "return_it"]

    @button(label="Drive a kilometre", permissions=["change"])
    def drive(self, request, obj):
        """Drive it round the block."""
        obj.kilometres += 1
        obj.save()
        self.message_user(request, f"{obj.plate} driven.")

    @button(permissions=["delete"])
    def sell(self, request, obj):
        obj.delete()

    @button(label="Return")
    def return_it(self, request, obj):
        obj.is_hired = False
        obj.save()

    @button(methods=("GET",))
    def look_at(self, request, obj):
        self.message_user(request, request.method)

    def hire(self, request, queryset):
        Van.objects.create(plate="NEW", is_hired=True)
        self.message_user(request, "Hired one.")

    def close_down(self, request, queryset):
        queryset.delete()

    def get_changelist_actions(self, request):
        return self.changelist_actions if request.user.is_superuser else ["hire"]
