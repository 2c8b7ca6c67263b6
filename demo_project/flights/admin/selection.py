"""Flights that somebody selected for an action, and the page that asks before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse

from demo_project.flights.models import Flight

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

#: How many flights an intermediate page lists.
LISTED = 20


class Selection:
    """The flights that are still on the ground, and how many others were selected."""

    def __init__(self, flights: QuerySet[Flight]) -> None:
        found = list(flights.select_related("origin", "destination"))
        self.waiting = [flight for flight in found if flight.can_change]
        self.others = len(found) - len(self.waiting)

    def report(self, model_admin: ModelAdmin, request: HttpRequest, *, done: str) -> None:
        """Say what was done, and what was left as it is."""
        count = len(self.waiting)
        if count:
            text = f"{done} {count} flight{'' if count == 1 else 's'}."
            model_admin.message_user(request, text, messages.SUCCESS)
        if self.others:
            text = f"Left {self.others} as before: departed, landed, diverted or cancelled."
            model_admin.message_user(request, text, messages.WARNING)


def save(
    model_admin: ModelAdmin, request: HttpRequest, flight: Flight, *, reason: str = ""
) -> None:
    """One flight at a time, so that receivers of signals hear of it and its history tells."""
    flight.save(update_fields=["status", "delay_minutes"])
    changed = {"changed": {"fields": ["status", "delay"]}}
    model_admin.log_change(request, flight, reason or [changed])


def intermediate_page(
    model_admin: ModelAdmin,
    request: HttpRequest,
    selection: Selection,
    *,
    name: str,
    form: forms.Form | None = None,
) -> TemplateResponse:
    """The page between choosing an action and running it, as Django's own for deleting."""
    context = {
        **model_admin.admin_site.each_context(request),
        "title": name.replace("_", " ").capitalize(),
        "opts": model_admin.opts,
        "form": form,
        "media": model_admin.media if form is None else model_admin.media + form.media,
        "listed": selection.waiting[:LISTED],
        "more": max(len(selection.waiting) - LISTED, 0),
        "count": len(selection.waiting),
        "others": selection.others,
        "action_name": name,
        "action_checkbox_name": ACTION_CHECKBOX_NAME,
        "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "select_across": request.POST.get("select_across", "0"),
    }
    request.current_app = model_admin.admin_site.name
    return TemplateResponse(request, f"admin/flights/flight/{name}.html", context)
