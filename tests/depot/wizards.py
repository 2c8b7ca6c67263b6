"""Actions that show more than one page, and those whose form refuses a combination."""

from __future__ import annotations

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.utils.safestring import mark_safe

from tests.depot.actions import CarrierForm, page
from tests.depot.models import Driver, Parcel, Van

SERVICES = {"ups": ["standard", "saver"], "dhl": ["paket", "express"]}


def show(modeladmin, request, queryset, says, *, form=None, hidden=None, **context):
    return page(
        modeladmin,
        request,
        queryset,
        "wizard",
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


@admin.action(permissions=["change"])
def ship_checked(modeladmin, request, queryset):
    form = CheckedForm(request.POST if "go" in request.POST else None)
    if not form.is_valid():
        return show(modeladmin, request, queryset, "Ship", form=form)
    queryset.update(status="shipped", carrier=form.cleaned_data["carrier"])
    return None


@admin.action(permissions=["change"])
def ship_checked_first(modeladmin, request, queryset):
    return ship_checked(modeladmin, request, queryset)


ship_checked_first.mcp_confirm = True
ship_checked_first.mcp_form = CheckedForm


class ViewOnlyForm(CarrierForm):
    """Its rule needs what only the view gives it."""

    stock = None
    note = forms.CharField(required=False)

    def clean(self):
        found = super().clean()
        if found["carrier"] not in self.stock:
            raise ValidationError("Sold out.")
        return found


@admin.action(permissions=["change"])
def ship_with_stock(modeladmin, request, queryset):
    form = ViewOnlyForm(request.POST if "go" in request.POST else None)
    form.stock = ["dhl"] if form.is_bound else None
    if not form.is_valid():
        return show(modeladmin, request, queryset, "Ship", form=form)
    queryset.update(status="shipped")
    return None


@admin.action(permissions=["change"])
def ship_declared_stock(modeladmin, request, queryset):
    return ship_with_stock(modeladmin, request, queryset)


ship_declared_stock.mcp_form = CarrierForm


class VanForm(forms.ModelForm):
    class Meta:
        model = Van
        fields = ["plate", "kilometres"]

    def clean_plate(self):
        if self.cleaned_data["plate"] == "SOLD":
            raise ValidationError("This van is sold.")
        return self.cleaned_data["plate"]


@admin.action(permissions=["change"])
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


@admin.action(permissions=["change"])
def date_it(modeladmin, request, queryset):
    is_sent = "go" in request.POST
    form = DatedForm(request.POST if is_sent else None, request.FILES if is_sent else None)
    if not form.is_valid():
        return show(modeladmin, request, queryset, "Date", form=form)
    modeladmin.message_user(request, f"{form.cleaned_data['at']:%Y-%m-%d}")
    return None


@admin.action(permissions=["change"])
def register_van(modeladmin, request, queryset):
    form = VanForm(request.POST if "go" in request.POST else None)
    if not form.is_valid():
        return show(modeladmin, request, queryset, "Register", form=form)
    form.save()
    return None


def service_form(carrier, data=None):
    class ServiceForm(forms.Form):
        service = forms.ChoiceField(choices=[(one, one) for one in SERVICES[carrier]])
        note = forms.CharField(required=False)

        def clean_note(self):
            if self.cleaned_data["note"] == "bad":
                raise ValidationError("No such note.")
            return self.cleaned_data["note"]

    return ServiceForm(data)


@admin.action(permissions=["change"])
def send_hidden(modeladmin, request, queryset):
    """Two pages. The second keeps the answer of the first in a hidden control."""
    sent = request.POST
    first = CarrierForm(sent if "go" in sent else None)
    if not first.is_valid():
        return show(modeladmin, request, queryset, "Who carries them?", form=first)
    carrier = first.cleaned_data["carrier"]
    form = service_form(carrier, sent if "step" in sent else None)
    if not form.is_valid():
        hidden = {"carrier": carrier, "step": "2"}
        return show(
            modeladmin, request, queryset, f"Service of {carrier}", form=form, hidden=hidden
        )
    queryset.update(status="shipped", carrier=f"{carrier} {form.cleaned_data['service']}")
    modeladmin.message_user(request, f"Note: {form.cleaned_data['note']}")
    return None


class CopiesForm(forms.Form):
    copies = forms.IntegerField(min_value=1, max_value=5)
    note = forms.CharField(required=False)


@admin.action(permissions=["change"])
def send_session(modeladmin, request, queryset):
    """Three pages. The session keeps what was answered, and forms are bound to any POST."""
    session, sent = request.session, request.POST
    if "go" not in sent:
        return show(modeladmin, request, queryset, "Carrier", form=CarrierForm())
    if "carrier" not in session:
        session["carrier"] = sent["carrier"]
        form = service_form(sent["carrier"], sent)
        return show(modeladmin, request, queryset, "Service", form=form)
    if "service" not in session:
        session["service"], session["note"] = sent["service"], sent["note"]
        return show(modeladmin, request, queryset, "Copies", form=CopiesForm())
    form = CopiesForm(sent)
    if not form.is_valid():
        return show(modeladmin, request, queryset, "Copies", form=form)
    queryset.update(status="shipped", carrier=f"{session['carrier']} {session['service']}")
    words = [session["note"], form.cleaned_data["copies"], form.cleaned_data["note"]]
    modeladmin.message_user(request, " ".join(map(str, words)))
    return None


@admin.action(permissions=["change"])
def send_freely(modeladmin, request, queryset):
    return refund(modeladmin, request, queryset)


send_freely.mcp_confirm = False


class ReasonForm(forms.Form):
    reason = forms.CharField(max_length=100_000)


@admin.action(permissions=["change"])
def refund(modeladmin, request, queryset):
    """The second page only asks whether."""
    if "sure" in request.POST:
        queryset.update(status="lost")
        modeladmin.message_user(request, "Refunded.")
        return None
    form = ReasonForm(request.POST if "go" in request.POST else None)
    if not form.is_valid():
        title = "Less" if Driver.objects.filter(name="Recession").exists() else "Refund"
        return show(modeladmin, request, queryset, title, form=form)
    price = "30" if Driver.objects.filter(name="Inflation").exists() else "20"
    says = f"Really refund {price} euros?"
    return show(modeladmin, request, queryset, says, hidden={"sure": "1"})


@admin.action(permissions=["change"])
def refund_first(modeladmin, request, queryset):
    return refund(modeladmin, request, queryset)


refund_first.mcp_confirm = True


@admin.action(permissions=["change"])
def refund_declared(modeladmin, request, queryset):
    return refund(modeladmin, request, queryset)


refund_declared.mcp_form = ReasonForm


@admin.action(permissions=["change"])
def write_each(modeladmin, request, queryset):
    """Careless: it writes on its way to the last page."""
    sent = request.POST
    if "go" not in sent:
        return show(modeladmin, request, queryset, "Carrier", form=CarrierForm())
    if "step" not in sent:
        queryset.update(carrier=sent["carrier"])
        Parcel.objects.filter(pk=0).update(carrier="nobody")
        form = service_form(sent["carrier"])
        return show(modeladmin, request, queryset, "Service", form=form, hidden={"step": "2"})
    if sent["note"] == "refuse":
        form = service_form("ups", {"service": "none"})
        hidden = {"step": "2"}
        return show(modeladmin, request, queryset, "Service", form=form, hidden=hidden)
    if sent["note"] == "deny":
        raise PermissionDenied
    if sent["note"] == "aside":
        return show(
            modeladmin, request, queryset, "Away", hidden={"x": "1"}, target="https://x.example/"
        )
    queryset.update(status="shipped")
    return None


@admin.action(permissions=["change"])
def write_whole(modeladmin, request, queryset):
    return write_each(modeladmin, request, queryset)


write_whole.mcp_atomic = True


@admin.action(permissions=["change"])
def write_unseen(modeladmin, request, queryset):
    """Its first page writes to a model that is not exposed."""
    from django.contrib.auth.models import Group

    if "go" in request.POST:
        Group.objects.create(name="secret")
        return show(modeladmin, request, queryset, "On", hidden={"step": "2"})
    return show(modeladmin, request, queryset, "Begin", hidden={"step": "1"})


@admin.action(permissions=["change"])
def go_on(modeladmin, request, queryset):
    """A wizard without an end."""
    step = int(request.POST.get("step", 0)) + 1
    return show(modeladmin, request, queryset, f"Page {step}", hidden={"step": step})


go_on.mcp_confirm = False


@admin.action(permissions=["change"])
def stand_still(modeladmin, request, queryset):
    """Its HTML has a control, and it takes no value that one can give."""
    controls = mark_safe('<input name="word">')
    return show(modeladmin, request, queryset, "Say the word", controls=controls)


@admin.action(permissions=["change"])
def ask_twice(modeladmin, request, queryset):
    """Two pages with the same control, which differ in a hidden one."""
    controls = mark_safe('<input name="word">')
    words = [*request.POST.getlist("words"), *request.POST.getlist("word")]
    if len(words) == 2:
        modeladmin.message_user(request, " ".join(words))
        return None
    hidden = dict.fromkeys(["words"][: len(words)], words[0] if words else "")
    return show(modeladmin, request, queryset, "Word", controls=controls, hidden=hidden)


@admin.action(permissions=["change"])
def end_reading(modeladmin, request, queryset):
    """Its last page has nothing to fill in."""
    if "go" in request.POST:
        queryset.update(status="shipped")
        return page(modeladmin, request, queryset, "read")
    modeladmin.message_user(request, "Begun.")
    return show(modeladmin, request, queryset, "Begin", hidden={"step": "1"})


def late(name, **context):
    """An action whose second page is no page to answer."""

    @admin.action(permissions=["change"], description=name)
    def action(modeladmin, request, queryset):
        if "step" in request.POST:
            queryset.update(status="lost")
            return None
        if "go" in request.POST:
            rows = Parcel.objects.all() if name == "widen_late" else queryset
            return show(modeladmin, request, rows, "Two", hidden={"step": "2"}, **context)
        return show(modeladmin, request, queryset, "One", hidden={"begin": "1"})

    action.__name__ = name
    action.mcp_confirm = False
    return action


WIZARDS = [
    ship_checked,
    ship_checked_first,
    ship_with_stock,
    ship_declared_stock,
    load_van,
    date_it,
    register_van,
    send_hidden,
    send_session,
    send_freely,
    refund,
    refund_first,
    refund_declared,
    write_each,
    write_whole,
    write_unseen,
    go_on,
    stand_still,
    ask_twice,
    end_reading,
    late("widen_late"),
    late("across_late", across=True),
    late("away_late", target="https://evil.example/steal/"),
    late("aside_late", target="/admin/auth/user/"),
]
