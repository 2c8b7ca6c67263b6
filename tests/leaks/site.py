"""A site over the nasty schema, and every kind of caller that it can have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin, display
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db.models import F
from django.test import RequestFactory

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.registry import Registry
from mcp_django.models import ExposedModel
from mcp_django.principal import READ, SCOPES, Principal, Restriction
from tests.nasty import models
from tests.nasty.site import EXPOSED, Narrowable

#: Columns that nobody may learn anything about, whoever asks and however.
HIDDEN = {
    models.Region: ("budget",),
    models.Person: ("password", "salary"),
    models.Customer: ("credit_rating",),
    models.Tag: ("internal_note",),
    models.Order: ("api_token", "margin", "blob"),
    models.Watch: ("secret_reason",),
    models.Line: ("cost",),
    models.Seat: ("pin",),
    models.Application: ("client_secret", "options", "manifest"),
    models.AccessToken: ("token",),
    User: ("password",),
}
#: Columns that records show masked. Nobody may learn anything else about them.
MASKED = {models.Note: ("text",)}
#: Paths of code to hidden columns of other models, where staff hid the column over there.
PASSING: dict[Any, tuple[str, ...]] = {
    models.Line: ("order__margin",),
    models.Watch: ("person__salary", "order__api_token"),
    models.Order: ("customer__credit_rating",),
}
#: Those among them that a search could look into.
TEXTS = ("internal_note", "api_token", "secret_reason", "pin", "client_secret", "token")
#: Tables without an exposure.
UNEXPOSED = (models.Tenant, Group, Permission)


class Shadowing(Narrowable):
    """Its annotations have the names of paths, and hold what is hidden."""

    def get_queryset(self, request):
        rows = super().get_queryset(request)
        return rows.annotate(order__status=F("order__api_token"), order__number=F("cost"))


class Distinct(Narrowable):
    def get_queryset(self, request):
        return super().get_queryset(request).distinct()


class Judging(ModelExposure):
    """Its rows are judged one by one."""

    def has_view_permission(self, request, obj=None):
        is_visible = obj is None or obj.pk not in request.judged_away
        return is_visible and super().has_view_permission(request)


class Selective(Narrowable):
    """Shows nobody the tokens that are judged away, either."""

    def get_queryset(self, request):
        rows = super().get_queryset(request)
        return rows.filter(application__owner__is_active=True) & rows.exclude(
            application__in=request.judged_away
        )


class Public(Narrowable):
    queryset_enforces_view_permission = True

    def has_view_permission(self, request, obj=None):
        return True


LEAKY: dict[Any, dict[str, Any]] = {
    models.Order: {
        **EXPOSED[models.Order],
        "fields": f"{EXPOSED[models.Order]['fields']} tags watchers",
    },
    models.Customer: {
        **EXPOSED[models.Customer],
        "computed": "shout",
        "bases": (ModelExposure,),
    },
    models.Tag: {
        "fields": "id slug parent",
        "filter_fields": "slug parent parent__slug parent__parent__slug",
        "label_fields": "slug",
        "search_fields": "slug parent__slug",
        "bases": (Distinct,),
    },
    models.Line: {
        **EXPOSED[models.Line],
        "fields": "id sku amount order order__number",
        "search_fields": "sku order__tags__slug order__customer__name",
        "bases": (Shadowing,),
    },
    models.Person: {**EXPOSED[models.Person], "label_fields": "username"},
    models.Region: {"fields": "name", "bases": (Public,)},
    models.Watch: {
        "fields": "order person order__status",
        "filter_fields": "order__number person__username person__manager__username",
        "order_fields": "order person",
    },
    models.Note: {"fields": "id text", "mask": {"text": "text"}},
    # The key is a secret that no record shows.
    models.Tricky: {
        "fields": "year contains order",
        "filter_fields": "year contains order__number",
        "order_fields": "year",
    },
    models.Application: {
        "fields": "id name client_id owner logo",
        "filter_fields": "name client_id owner owner__username options tokens tokens__scope",
        "search_fields": "name owner__email",
        "bases": (Judging,),
    },
    models.AccessToken: {
        "fields": "id scope expires user application user__username",
        "filter_fields": "scope expires user user__username user__applications__name",
        "order_fields": "expires user__username",
        "search_fields": "^user__username",
        "bases": (Selective,),
    },
}


class CustomerAdmin(ModelAdmin):  # type: ignore[type-arg]
    """Decides for an exposure that decides nothing."""

    def get_queryset(self, request):
        narrow = request.narrow.get(models.Customer)
        rows = super().get_queryset(request)
        return narrow(rows) if narrow else rows

    @display(ordering="name")
    def shout(self, customer):
        return f"{customer.name}!"


class UserAdmin(ModelAdmin):  # type: ignore[type-arg]
    """Lists more than it should: what looks secret must not come through."""

    mcp_expose = True
    list_display = ["username", "email", "is_active"]
    list_filter = ["is_staff", "password", "tokens__token", "groups__name", "tokens__scope"]
    search_fields = ["username", "password", "=tokens__token"]
    ordering = ["password"]

    def get_queryset(self, request):
        narrow = request.narrow.get(User)
        rows = super().get_queryset(request)
        return narrow(rows) if narrow else rows


def make_admin_site() -> AdminSite:
    site = AdminSite(name="leaks")
    site.register(User, UserAdmin)
    site.register(models.Customer, CustomerAdmin)
    return site


#: Relations that are shown besides where paths need no listing.
RELATIONS = {
    models.Order: ("owner",),
    models.Customer: ("region", "account_manager"),
    models.Person: ("manager",),
    models.Note: ("author",),
    models.RushOrder: ("order_ptr", "customer"),
    models.Application: ("owner",),
}


def make_registry(*, is_wide: bool = False, is_ruled: bool = False) -> Registry:
    """New exposures: nothing that was worked out about them before is remembered.

    A wide one shows what is hidden, for rows to take it away: see `narrow_by_rows`. In a ruled one
    no list narrows what paths there are by rule.
    """
    found = Registry()
    for model, options in {**EXPOSED, **LEAKY}.items():
        attributes = attributes_of(options)
        bases = attributes.pop("bases", (Narrowable,))
        if is_wide:
            attributes = widened(attributes, (*HIDDEN.get(model, ()), *PASSING.get(model, ())))
        if is_ruled:
            attributes = ruled(attributes, RELATIONS.get(model, ()))
        found.register(model, type(f"{model.__name__}Exposure", bases, attributes))
    return found


def attributes_of(options: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.split() if isinstance(value, str) else value for name, value in options.items()
    }


def widened(attributes: dict[str, Any], hidden: tuple[str, ...]) -> dict[str, Any]:
    wide = {**attributes, "fields": [*attributes["fields"], *hidden]}
    for name in ("filter_fields", "search_fields", "label_fields"):
        if name in attributes:
            names = [one for one in hidden if is_for(name, one)]
            wide[name] = list(dict.fromkeys([*attributes[name], *names]))
    return wide


def ruled(attributes: dict[str, Any], relations: tuple[str, ...]) -> dict[str, Any]:
    found = {**attributes, "fields": list(dict.fromkeys([*attributes["fields"], *relations]))}
    found.pop("order_fields", None)
    listed = found.pop("filter_fields", ())
    return {**found, "more_filter_fields": [one for one in listed if one not in found["fields"]]}


def is_for(use: str, path: str) -> bool:
    if use == "search_fields":
        return path.split("__")[-1] in TEXTS
    return use != "label_fields" or "__" not in path


def narrow_by_rows(*, is_ruled: bool = False) -> None:
    """What staff would do about a wide registry."""
    for model, options in {**EXPOSED, **LEAKY}.items():
        attributes = attributes_of(options)
        if is_ruled:
            attributes = ruled(attributes, RELATIONS.get(model, ()))
        ExposedModel.objects.create(
            label=model._meta.label_lower,
            fields=[*attributes["fields"], *PASSING.get(model, ())],
            filter_fields=attributes.get("filter_fields")
            and [
                *attributes["filter_fields"],
                *PASSING.get(model, ()),
            ],
        )


#: For the test to know what a caller sees, without asking the code that it tests.
ALL, OPEN, NOTHING = "all", "open", "nothing"
SOME = (models.Order, models.Tag, models.Line, models.Tricky, models.Application)
GATED = (User, models.Customer)
ALWAYS_OPEN = (models.Application, models.AccessToken)


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """One kind of caller. `sees` says of each model: all its rows, the open ones, nothing."""

    name: str
    sees: Callable[[Any], str]
    user: dict[str, bool] = field(default_factory=dict)
    #: Models that the user has a permission for. None: all.
    permitted: tuple[Any, ...] | None = None
    scopes: tuple[str, ...] = SCOPES
    held_to: Any = None
    #: Whether code shows what is hidden, and staff took it away.
    is_by_rows: bool = False
    #: Whether rights take away rows and relations that others see.
    is_narrow: bool = False


def everything(model: Any) -> str:
    return OPEN if model in ALWAYS_OPEN else ALL


VIEWERS = {
    one.name: one
    for one in (
        Viewer(
            name="superuser with a read token",
            sees=everything,
            user={"is_superuser": True, "is_staff": True},
            scopes=(READ,),
        ),
        Viewer(name="staff with all rights", sees=everything, user={"is_staff": True}),
        Viewer(
            name="staff where rows hide what code shows",
            sees=everything,
            user={"is_staff": True},
            is_by_rows=True,
        ),
        Viewer(
            name="staff with some rights",
            sees=lambda model: everything(model) if model in (*SOME, models.Region) else NOTHING,
            user={"is_staff": True},
            permitted=SOME,
            is_narrow=True,
        ),
        Viewer(
            name="staff who see the open rows",
            sees=lambda _: OPEN,
            user={"is_staff": True},
            is_narrow=True,
        ),
        Viewer(
            name="nobody's staff with all permissions",
            sees=lambda model: NOTHING if model in GATED else everything(model),
            user={"is_staff": False},
        ),
        Viewer(
            name="a credential for one model",
            sees=lambda model: ALL if model is models.Order else NOTHING,
            user={"is_superuser": True, "is_staff": True},
            held_to=models.Order,
        ),
        Viewer(
            name="anonymous",
            sees=lambda model: ALL if model is models.Region else NOTHING,
            permitted=(),
        ),
    )
}


def rights_of(viewer: Viewer, rows: Any, registry: Registry) -> Rights:
    """The rights of a call that nobody has asked anything about."""
    request: Any = RequestFactory().get("/")
    request.user = user_of(viewer)
    request.judged_away = set(rows.closed[models.Application])
    # Which attributes callers see does not vary here; what an exposure declares does.
    request.shown = {models.PaidOrder: ["number"]}
    request.narrow = {
        model: (lambda found, keys=keys: found.exclude(pk__in=keys))
        for model, keys in rows.closed.items()
        if keys and viewer.sees(model) == OPEN and model not in ALWAYS_OPEN
    }
    if models.Customer in request.narrow:
        # A join, which Django could take up again for conditions of ours.
        request.narrow[models.Customer] = lambda found: found.filter(tenant__name="open")
    held = None if viewer.held_to is None else frozenset({viewer.held_to._meta.label_lower})
    principal = Principal(
        user=request.user,
        scopes=frozenset(viewer.scopes),
        method="test",
        restriction=Restriction(models=held),
    )
    return Rights(request, principal, registry=registry)


def user_of(viewer: Viewer) -> Any:
    if not viewer.user:
        return AnonymousUser()
    user, is_new = User.objects.get_or_create(username=viewer.name, defaults=viewer.user)
    if is_new and not user.is_superuser:
        found = Permission.objects.all()
        if viewer.permitted is not None:
            names = [model._meta.model_name for model in viewer.permitted]
            found = found.filter(content_type__model__in=names)
        user.user_permissions.set(found)
    return user
