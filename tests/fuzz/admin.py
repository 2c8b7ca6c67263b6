"""The admin of the shop. Who may not see what is hidden finds the other rows only."""

from __future__ import annotations

from django import forms
from django.contrib import admin
from django.shortcuts import render

from tests.fuzz.models import (
    Customer,
    Label,
    Line,
    Memo,
    Order,
    Parcel,
    Payment,
    Review,
    Stamp,
    Vault,
)

site = admin.AdminSite(name="fuzz")


def sees_hidden(request):
    return request.user.has_perm("fuzz.see_hidden")


class HidingAdmin(admin.ModelAdmin):
    def get_queryset(self, request):
        rows = super().get_queryset(request)
        return rows if sees_hidden(request) else rows.filter(is_hidden=False)


@admin.register(Customer, site=site)
class CustomerAdmin(HidingAdmin):
    search_fields = ["name"]
    fields = ["name", "country", "logo"]


@admin.register(Label, site=site)
class LabelAdmin(HidingAdmin):
    search_fields = ["name"]
    fields = ["name", "parent"]


class LineInline(admin.TabularInline):
    model = Line
    fields = ["sku", "amount"]
    extra = 0


class MemoInline(admin.TabularInline):
    model = Memo
    fields = ["text"]
    extra = 0


class ShipForm(forms.Form):
    carrier = forms.ChoiceField(choices=[("ups", "UPS"), ("dhl", "DHL")])
    days = forms.IntegerField(min_value=1, max_value=9, initial=2)


@admin.action(description="Mark as paid", permissions=["change"])
def mark_paid(modeladmin, request, queryset):
    count = queryset.update(status=Order.Status.PAID)
    modeladmin.message_user(request, f"{count} paid.")


@admin.action(permissions=["change"])
def ship(modeladmin, request, queryset):
    """Asks for a carrier on a page of its own."""
    form = ShipForm(request.POST if "apply" in request.POST else None)
    if form.is_valid():
        modeladmin.message_user(request, f"{queryset.count()} with {form.cleaned_data}.")
        return None
    context = {"form": form, "queryset": queryset, "opts": modeladmin.model._meta}
    return render(request, "fuzz/ship.html", context)


@admin.register(Order, site=site)
class OrderAdmin(HidingAdmin):
    inlines = [LineInline, MemoInline]
    search_fields = ["number", "customer__name"]
    autocomplete_fields = ["customer"]
    actions = [mark_paid, ship]
    exclude = ["margin", "draft", "is_hidden"]


@admin.register(Line, site=site)
class LineAdmin(HidingAdmin):
    fields = ["order", "sku", "amount"]


@admin.register(Payment, site=site)
class PaymentAdmin(HidingAdmin):
    fields = ["order", "amount"]


@admin.register(Review, site=site)
class ReviewAdmin(admin.ModelAdmin):
    fields = ["order", "text"]

    def has_view_permission(self, request, obj=None):
        allowed = super().has_view_permission(request, obj)
        return allowed and (obj is None or not obj.is_hidden or sees_hidden(request))

    def has_change_permission(self, request, obj=None):
        return super().has_change_permission(request, obj) and self.has_view_permission(
            request, obj
        )


@admin.register(Memo, site=site)
class MemoAdmin(admin.ModelAdmin):
    """Shows people all rows: for assistants the exposure has another rule."""

    fields = ["order", "text"]


class ParcelForm(forms.ModelForm):
    def clean(self):
        values = super().clean()
        if values.get("is_fragile") and values.get("kind") == "bag":
            self.add_error("kind", "Not in a bag.")
        if values.get("email") and not values.get("owners"):
            raise forms.ValidationError("Whose address is it?")
        return values


class StampInline(admin.TabularInline):
    model = Stamp
    extra = 0


@admin.register(Parcel, site=site)
class ParcelAdmin(admin.ModelAdmin):
    form = ParcelForm
    inlines = [StampInline]
    radio_fields = {"kind": admin.HORIZONTAL}
    raw_id_fields = ["payer"]
    autocomplete_fields = ["owners"]
    filter_horizontal = ["labels"]


site.register([Stamp, Vault])
