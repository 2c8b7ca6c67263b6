"""Actions as sites write them, the careless ones among them."""

from __future__ import annotations

import itertools

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.http import (
    FileResponse,
    Http404,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.template.response import TemplateResponse

import mcp_django as mcp
from tests.depot.models import Driver, Van

#: What generators and files of answers did when they ended.
closed = []
#: Those that the list of parcels has.
OFFERED = []


def offered(function):
    OFFERED.append(function)
    return function


def offer(*, permissions=None, description=None, **marks):
    """Offer an action on parcels, with the attributes that a site sets on it."""

    def decorate(function):
        vars(function).update(marks)
        offered(function)
        return admin.action(function, permissions=permissions, description=description)

    return decorate


def offer_too(action, name, **marks):
    """Offer the same under another name, with other attributes."""

    def other(modeladmin, request, queryset):
        return action(modeladmin, request, queryset)

    other.__name__ = other.__qualname__ = name
    return offer(permissions=["change"], **marks)(other)


class CarrierForm(forms.Form):
    """As much of it as a description has room for."""

    carrier = forms.ChoiceField(choices=[("ups", "UPS"), ("dhl", "DHL")])


class ShipForm(forms.Form):
    carrier = forms.ChoiceField(choices=[("ups", "UPS"), ("dhl", "DHL")])
    copies = forms.IntegerField(min_value=1, max_value=5, initial=1)
    leaves_on = forms.DateField(required=False)


@offered
@admin.action(
    description="Mark selected %(verbose_name_plural)s as shipped", permissions=["change"]
)
def mark_shipped(modeladmin, request, queryset):
    """Say that parcels have left."""
    count = queryset.update(status="shipped")
    modeladmin.message_user(request, f"{count} shipped.", messages.SUCCESS)


@offer(permissions=["change"])
def lose_all(modeladmin, request, queryset):
    modeladmin.message_user(request, "They cannot be found.", messages.ERROR)


@offer(permissions=["change"])
def log_each(modeladmin, request, queryset):
    for parcel in queryset:
        modeladmin.log_change(request, parcel, "Looked at.")


@offer(permissions=["change"])
def break_half_way(modeladmin, request, queryset):
    queryset.update(status="lost")
    raise RuntimeError("secret: the belt tore")


break_whole = offer_too(break_half_way, "break_whole", mcp_atomic=True)


@offer(permissions=["change"])
def refuse(modeladmin, request, queryset):
    raise mcp.ToolError("The depot is closed. Come back at eight.")


@offer(permissions=["change"])
def vanish(modeladmin, request, queryset):
    raise Http404


@offer(permissions=["lose"])
def lose(modeladmin, request, queryset):
    queryset.update(status="lost")


@offered
def list_numbers(modeladmin, request, queryset):
    lines = "".join(f"{one.number}\n" for one in queryset.order_by("number"))
    response = HttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="numbers.csv"'
    return response


list_numbers.mcp_read_only = True


@offer(permissions=["view"], mcp_read_only=True)
def labels(modeladmin, request, queryset):
    """A file of bytes, opened as a file."""
    import io

    class Sheet(io.BytesIO):
        def close(self):
            closed.append("sheet")
            super().close()

    return FileResponse(Sheet(b"\x89PNG\xff" * 10), as_attachment=True, filename="../labels.png")


@offer(permissions=["view"])
def huge(modeladmin, request, queryset):
    return HttpResponse(b"x" * (3 << 20), content_type="application/octet-stream")


@offer(permissions=["view"])
def half_huge(modeladmin, request, queryset):
    return HttpResponse(b"\xff" * 1_000_000, content_type="application/octet-stream")


@offer(permissions=["view"])
def endless(modeladmin, request, queryset):
    def chunks():
        try:
            for _ in itertools.repeat(None):
                yield b"x" * 1000
        finally:
            closed.append("endless")

    return StreamingHttpResponse(chunks(), content_type="text/plain")


@offer(permissions=["view"])
def endless_nothing(modeladmin, request, queryset):
    def chunks():
        request.mcp.cancelled.set()  # nobody waits any more
        while True:
            yield b""

    return StreamingHttpResponse(chunks(), content_type="text/plain")


@offer(permissions=["view"])
def later(modeladmin, request, queryset):
    async def chunks():
        yield b"x"

    return StreamingHttpResponse(chunks(), content_type="text/plain")


@offer(permissions=["view"])
def report(modeladmin, request, queryset):
    return HttpResponseRedirect("https://reports.example/7")


@offer(permissions=["view"])
def history(modeladmin, request, queryset):
    return HttpResponseRedirect("/depot/depot/driver/")


@offer(permissions=["view"])
def teapot(modeladmin, request, queryset):
    return HttpResponse("no", status=418)


def page(modeladmin, request, queryset, template, **context):
    context = {
        **modeladmin.admin_site.each_context(request),
        "title": "Ship parcels",
        "opts": modeladmin.opts,
        "parcels": queryset,
        "action": request.POST["action"],
        **context,
    }
    return TemplateResponse(request, f"depot/{template}.html", context)


@offered
@admin.action(permissions=["change"])
def ship(modeladmin, request, queryset):
    """Ship with a carrier."""
    form = ShipForm(request.POST if "apply" in request.POST else None)
    if not form.is_valid():
        return page(modeladmin, request, queryset, "ship", form=form)
    given = form.cleaned_data
    with transaction.atomic():
        queryset.update(status="shipped", carrier=given["carrier"])
    day = f" on {given['leaves_on']}" if given["leaves_on"] else ""
    text = f"{queryset.count()} by {given['carrier']}, {given['copies']} copies{day}."
    modeladmin.message_user(request, text)


ship_declared = offer_too(ship, "ship_declared", mcp_form=CarrierForm)
ship_freely = offer_too(
    ship, "ship_freely", mcp_confirm=False, mcp_description="Ship at once.", mcp_name="ship_now"
)


@offer(permissions=["change"])
def ship_html(modeladmin, request, queryset):
    """The page has no form object: only HTML tells what it asks."""
    if "go" in request.POST:
        count = queryset.update(status="shipped", carrier=request.POST.get("carrier", ""))
        gift = "gift" in request.POST
        words = " ".join(request.POST.getlist("extras"))
        speed = request.POST.get("speed", "")
        modeladmin.message_user(request, f"{count} {speed} {words} gift={gift}", messages.WARNING)
        return None
    return render(
        request, "depot/ship_html.html", {"parcels": queryset, "action": request.POST["action"]}
    )


@offer(permissions=["change"])
def confirm_only(modeladmin, request, queryset):
    if request.POST.get("post"):
        queryset.update(status="lost")
        return None
    return page(modeladmin, request, queryset, "confirm")


@offer(permissions=["change"])
def remember(modeladmin, request, queryset):
    """Keeps what it knows in the session, between its page and the answer."""
    if "go" in request.POST:
        modeladmin.message_user(request, f"Remembered {request.session['parcels']}.")
        return None
    request.session["parcels"] = queryset.count()
    return page(modeladmin, request, queryset, "remember")


@offer(permissions=["change"])
def widen(modeladmin, request, queryset):
    """A page that acts on more than was selected."""
    if "go" in request.POST:
        queryset.update(status="lost")
        return None
    everything = modeladmin.model.objects.all()
    return page(modeladmin, request, everything, "remember")


@offer(permissions=["change"])
def widen_across(modeladmin, request, queryset):
    if "go" in request.POST:
        queryset.update(status="lost")
        return None
    return page(modeladmin, request, queryset, "remember", across=True)


def leading(name, target):
    """An action whose page leads somewhere."""

    def lead(modeladmin, request, queryset):
        return page(modeladmin, request, queryset, "remember", target=target)

    lead.__name__ = lead.__qualname__ = name
    return offer(permissions=["change"])(lead)


lead_away = leading("lead_away", "https://evil.example/steal/")
lead_nowhere = leading("lead_nowhere", "/nowhere/")
# To another admin of the same project, where this user may have other rights.
lead_aside = leading("lead_aside", "/admin/auth/user/")


@offer(permissions=["change"])
def lead_within(modeladmin, request, queryset):
    return page(modeladmin, request, queryset, "elsewhere")


class PhotoForm(forms.Form):
    photo = forms.FileField()
    driver = forms.ModelChoiceField(Driver.objects.all(), required=False)
    vans = forms.ModelMultipleChoiceField(Van.objects.all(), required=False)
    day = forms.SplitDateTimeField(required=False)


@offer(permissions=["change"])
def attach(modeladmin, request, queryset):
    """A page with a file, related records and controls that belong together."""
    form = PhotoForm(request.POST if "apply" in request.POST else None, request.FILES or None)
    if not form.is_valid():
        return page(modeladmin, request, queryset, "ship", form=form, other=PhotoForm(prefix="x"))
    given = form.cleaned_data
    driver = given["driver"].name if given["driver"] else "nobody"
    text = f"{given['photo'].name} {given['photo'].size} {driver} {given['vans'].count()}"
    modeladmin.message_user(request, f"{text} {given['day'] and given['day'].isoformat()}")


@offer(permissions=["change"])
def pack(modeladmin, request, queryset):
    """A page with two forms of one class."""
    data = request.POST if "apply" in request.POST else None
    inner, outer = CarrierForm(data, prefix="inner"), CarrierForm(data, prefix="outer")
    if not (inner.is_valid() and outer.is_valid()):
        return page(modeladmin, request, queryset, "ship", form=inner, forms=[inner, outer])
    carriers = [one.cleaned_data["carrier"] for one in (inner, outer)]
    modeladmin.message_user(request, " in ".join(carriers))


@offer(permissions=["change"])
def say_and_show(modeladmin, request, queryset):
    """The page shows the message itself, which takes it out of the queue."""
    modeladmin.message_user(request, "Said already.", messages.ERROR)
    return page(modeladmin, request, queryset, "read")


@offered
@admin.action(permissions=["change"])
def count_slowly(modeladmin, request, queryset):
    call = getattr(request, "mcp", None)
    parcels = list(queryset)
    for done, _ in enumerate(parcels, start=1):
        if call is not None:
            call.progress(done, total=len(parcels), message=f"parcel {done}")
    modeladmin.message_user(request, "Counted.")


@offer(permissions=["change"])
def leave_a_mark(modeladmin, request, queryset):
    """Careless: a ModelAdmin is shared by all threads."""
    modeladmin.last_user = request.user.get_username()
    modeladmin.message_user(request, modeladmin.last_user)


@offer(permissions=["change"], mcp_confirm=True)
def ask_always(modeladmin, request, queryset):
    queryset.update(status="lost")
