"""The rules of the site's ModelAdmins, asked through the admin site that has the model."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin, sites
from django.contrib.admin.sites import all_sites
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from mcp_django.conf import get_config
from mcp_django.exposure.permissions import has_plain_manager

#: A ModelAdmin that replaces one of these may show different fields to different people.
FIELD_METHODS = (
    "get_fields",
    "get_exclude",
    "get_fieldsets",
    "get_readonly_fields",
    "get_list_display",
)
OBJECT_METHODS = (
    "has_view_permission",
    "has_change_permission",
    "has_view_or_change_permission",
)


def admin_sites() -> list[AdminSite]:
    """The sites named in ADMIN_SITES, in that order. `all_sites` is a set without one.

    Names need not be unique: of those that share one the default site comes first.
    """
    known = sorted(all_sites, key=lambda site: sites.site != site)
    return [site for name in get_config().admin_sites for site in known if site.name == name]


def missing_sites() -> list[str]:
    """The names in ADMIN_SITES that no site has: misspelt, or not imported yet."""
    known = {site.name for site in all_sites}
    return [name for name in get_config().admin_sites if name not in known]


def model_admins(model: type[Model]) -> list[ModelAdmin[Any]]:
    """The ModelAdmins of a model on those sites, in the order of the sites."""
    return [site._registry[model] for site in admin_sites() if model in site._registry]


#: A ModelAdmin that replaces none of these asks nothing but the permissions of the user.
OWN_METHODS = (*FIELD_METHODS, *OBJECT_METHODS, "get_queryset")


class AdminSource:
    def __init__(self, model_admin: ModelAdmin[Any]) -> None:
        self.admin = model_admin

    def may_view(self, request: HttpRequest) -> bool:
        return self.admin.has_view_permission(request)

    def rows(self, request: HttpRequest) -> QuerySet[Any]:
        return self.admin.get_queryset(request)

    def shown(self, request: HttpRequest) -> frozenset[str] | None:
        if not any(overrides(self.admin, name) for name in FIELD_METHODS):
            return None
        # What exists is shown by the change form; without an object the add form is meant.
        some = self.admin.model()
        names = {
            *flatten_fieldsets(self.admin.get_fieldsets(request, some)),
            *self.admin.get_readonly_fields(request, some),
            *self.admin.get_list_display(request),
        }
        key = self.admin.model._meta.pk
        return frozenset(str(name) for name in names if not callable(name)) | {key.name}

    def judges_objects(self) -> bool:
        return any(overrides(self.admin, name) for name in OBJECT_METHODS)

    def may_view_object(self, request: HttpRequest, obj: Model) -> bool:
        return self.admin.has_view_permission(request, obj)

    def is_constant(self) -> bool:
        site = self.admin.admin_site
        is_own = any(overrides(self.admin, name) for name in OWN_METHODS)
        gate = getattr(site.has_permission, "__func__", None)
        return (
            not is_own and gate is AdminSite.has_permission and has_plain_manager(self.admin.model)
        )


def overrides(model_admin: ModelAdmin[Any], name: str) -> bool:
    return getattr(type(model_admin), name) is not getattr(ModelAdmin, name)


class Gates:
    """The admin sites as one request finds them: each is asked once whether it lets the user in.

    The site's own gate comes first. Only `AdminSite.admin_view` asks it in the admin itself, so a
    user with every model permission who is not staff would pass all `has_*_permission`.
    """

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.sites = admin_sites()
        self._is_open: dict[AdminSite, bool] = {}

    def source_of(self, model: type[Model], *, otherwise: Any) -> Any:
        """Who answers for `model`: an admin, `otherwise` without one, None where no site lets in.

        While a site that is named cannot be found, nobody knows which models it guards.
        """
        found = [site for site in self.sites if model in site._registry]
        if not found:
            return None if missing_sites() else otherwise
        model_admin = self.admin_of(model)
        return None if model_admin is None else AdminSource(model_admin)

    def admin_of(self, model: type[Model]) -> ModelAdmin[Any] | None:
        """The ModelAdmin of a model on the first site that lets the user in."""
        found = (site for site in self.sites if model in site._registry and self.is_open(site))
        return next((site._registry[model] for site in found), None)

    def is_open(self, site: AdminSite) -> bool:
        if site not in self._is_open:
            self._is_open[site] = site.has_permission(self.request)
        return self._is_open[site]
