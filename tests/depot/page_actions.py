"""Actions whose form refuses a combination, and those that go on after their page."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.utils.safestring import mark_safe

from tests.depot.actions import CarrierForm, offer, offer_too, page
from tests.depot.models import Van


def show(modeladmin, request, queryset, says, *, form=None, hidden=None, **context):
    return page(
        modeladmin,
        request,
        queryset,
        "step",
        title=says,
        says=says,
        form=form,
        hidden=hidden or {},
        **context,
    )


class CheckedForm(forms.Form):
    """Takes each of the values, and not all of them together."""

    carrier = forms.ChoiceField(choices=[("ups", "UPS"), ("dhl", "DHL")])
    copies = forms.IntegerField(min_value=1, max_value=5, initial=1)

    def clean(self):
        found = super().clean()
        if found.get("carrier") == "ups" and found.get("copies", 0) > 2:
            raise ValidationError("UPS takes at most 2 copies.", code="too_many")
        return found


@offer(permissions=["change"])
def ship_checked(modeladmin, request, queryset):
    form = CheckedForm(request.POST if "go" in request.POST else None)
    if not form.is_valid():
        return show(modeladmin, request, queryset, "Ship", form=form)
    queryset.update(status="shipped", carrier=form.cleaned_data["carrier"])
    return None


ship_checked_first = offer_too(
    ship_checked, "ship_checked_first", mcp_confirm=True, mcp_form=CheckedForm
)


class ViewOnlyForm(CarrierForm):
    """Its rule needs what only the view gives it."""

    stock = None
    note = forms.CharField(required=False)

    def clean(self):
        found = super().clean()
        if found["carrier"] not in self.stock:
            raise ValidationError("Sold out.")
        return found


@offer(permissions=["change"])
def ship_with_stock(modeladmin, request, queryset):
    form = ViewOnlyForm(request.POST if "go" in request.POST else None)
    form.stock = ["dhl"] if form.is_bound else None
    if not form.is_valid():
        return show(modeladmin, request, queryset, "Ship", form=form)
    queryset.update(status="shipped")
    return None


ship_declared_stock = offer_too(ship_with_stock, "ship_declared_stock", mcp_form=CarrierForm)


class VanForm(forms.ModelForm):
    class Meta:
        model = Van
        fields = ["plate", "kilometres"]

    def clean_plate(self):
        if self.cleaned_data["plate"] == "SOLD":
            raise ValidationError("This van is sold.")
        return self.cleaned_data["plate"]


@offer(permissions=["change"])
def load_van(modeladmin, request, queryset):
    """Its view takes no more of the form than the page shows, which is a part."""
    if "go" in request.POST:
        queryset.update(carrier=request.POST["plate"])
        return None
    controls = mark_safe('<input name="plate">')
    return show(modeladmin, request, queryset, "Load", other=VanForm(), controls=controls)


class DatedForm(forms.Form):
    """One of its fields has two controls, and another takes what it begins with."""

    at = forms.SplitDateTimeField()
    day_of_call = forms.CharField(initial="today", disabled=True)
    proof = forms.FileField()

    def clean_proof(self):
        if self.cleaned_data["proof"].read() != b"hello":
            raise ValidationError("This is no proof.")
        return self.cleaned_data["proof"]


@offer(permissions=["change"])
def date_it(modeladmin, request, queryset):
    is_sent = "go" in request.POST
    form = DatedForm(request.POST if is_sent else None, request.FILES if is_sent else None)
    if not form.is_valid():
        return show(modeladmin, request, queryset, "Date", form=form)
    modeladmin.message_user(request, f"{form.cleaned_data['at']:%Y-%m-%d}")
    return None


@offer(permissions=["change"])
def register_van(modeladmin, request, queryset):
    form = VanForm(request.POST if "go" in request.POST else None)
    if not form.is_valid():
        return show(modeladmin, request, queryset, "Register", form=form)
    form.save()
    return None


class KindForm(forms.Form):
    kind = forms.CharField(max_length=20)


class NoteForm(forms.Form):
    note = forms.CharField()


@offer(permissions=["change"])
def go_on(modeladmin, request, queryset):
    """Write, and show another page, of the kind that the first one asks for."""
    if "step" in request.POST:
        queryset.update(status="shipped")
        return None
    form = KindForm(request.POST if "go" in request.POST else None)
    if not form.is_valid():
        return show(modeladmin, request, queryset, "Which kind?", form=form)
    kind = form.cleaned_data["kind"]
    queryset.update(carrier=kind)
    level = messages.ERROR if kind == "failure" else messages.INFO
    modeladmin.message_user(request, f"Begun with {kind}.", level)
    forms_by_kind = {"same": KindForm(), "bound": NoteForm(request.POST), "question": None}
    following = forms_by_kind.get(kind, NoteForm())
    return show(modeladmin, request, queryset, "And then?", form=following, hidden={"step": "2"})


go_on_first = offer_too(go_on, "go_on_first", mcp_confirm=True)


go_on_freely = offer_too(go_on, "go_on_freely", mcp_confirm=False)


@offer(permissions=["change"])
def stand_still(modeladmin, request, queryset):
    """Its HTML has a control, and it takes no value that one can give."""
    controls = mark_safe('<input name="word">')
    return show(modeladmin, request, queryset, "Say the word", controls=controls)


@offer(permissions=["change"])
def end_reading(modeladmin, request, queryset):
    """Its last page has nothing to fill in."""
    if "go" in request.POST:
        queryset.update(status="shipped")
        return page(modeladmin, request, queryset, "read")
    modeladmin.message_user(request, "Begun.")
    return show(modeladmin, request, queryset, "Begin", hidden={"step": "1"})
