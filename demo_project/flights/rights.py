"""The rows that somebody may see: the admin's answer, for code outside the admin."""

from __future__ import annotations

from typing import TypeVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from demo_project.flights.models import Country

AnyModel = TypeVar("AnyModel", bound=Model)


def visible(model: type[AnyModel], request: HttpRequest) -> QuerySet[AnyModel]:
    """The rows that the ModelAdmin shows to this user; none without the right to view.

    A ModelAdmin asks for permissions only. That the user is staff at all is the site's question.
    """
    model_admin = admin.site.get_model_admin(model)
    if not (admin.site.has_permission(request) and model_admin.has_view_permission(request)):
        return model._default_manager.none()
    return model_admin.get_queryset(request)


def country_of(request: HttpRequest) -> Country | None:
    """The one country that this user looks after. None: the user is not narrowed."""
    profile = getattr(request.user, "profile", None)
    return None if profile is None else profile.country
