"""The rules of the site's ModelAdmins, asked through the admin site that has the model."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin, sites
from django.contrib.admin.options import InlineModelAdmin
from django.contrib.admin.sites import all_sites
from django.contrib.admin.utils import flatten, flatten_fieldsets
from django.core.exceptions import FieldDoesNotExist, ImproperlyConfigured
from django.db.models import CharField, ManyToManyField, Model, Q, QuerySet
from django.db.models.functions import Cast
from django.forms.models import ALL_FIELDS, ModelFormOptions, _get_foreign_key
from django.http import HttpRequest

from mcp_django.conf import get_config
from mcp_django.exposure.fields import choices_of, kind_of
from mcp_django.exposure.options import (
    ModelExposure,
    WaitingExposure,
    has_plain_manager,
    is_named_in,
    looks_at_object,
    looks_secret,
)
from mcp_django.exposure.paths import resolve

#: A ModelAdmin that replaces one of these may show different fields to different people.
FIELD_METHODS = (
    "get_form",
    "get_fields",
    "get_exclude",
    "get_fieldsets",
    "get_readonly_fields",
    "get_list_display",
)
#: Records among which one is looked for that the caller may see.
FIRST_ROWS = 25
#: What the admin asks before it shows a list or a record. `has_change_permission` alone takes
#: nothing away: whoever may view sees the record, read-only.
VIEW_METHODS = ("has_view_permission", "has_view_or_change_permission")


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
OWN_METHODS = (*FIELD_METHODS, *VIEW_METHODS, "get_queryset")


class AdminSource:
    def __init__(self, model_admin: ModelAdmin[Any]) -> None:
        self.admin = model_admin

    def _rules(self) -> list[Any]:
        # Django's own second method asks the first, and is content with it.
        names = VIEW_METHODS if overrides(self.admin, VIEW_METHODS[1]) else VIEW_METHODS[:1]
        return [getattr(self.admin, name) for name in names]

    def may_view(self, request: HttpRequest) -> bool:
        return all(rule(request) for rule in self._rules())

    def rows(self, request: HttpRequest) -> QuerySet[Any]:
        return self.admin.get_queryset(request)

    def shown(self, request: HttpRequest, rows: QuerySet[Any]) -> frozenset[str] | None:
        if not overrides(self.admin, *FIELD_METHODS):
            return None
        names = {*self.admin.get_list_display(request)}
        # What exists is shown by the change form, and without a record the add form is all there
        # is. A record is a stored one: Django gives these methods no other, and those of a site
        # may follow its relations.
        record = self._first(request, rows)
        if record is not None or self.admin.has_add_permission(request):
            on_page = {*flatten_fieldsets(self.admin.get_fieldsets(request, record))}
            read_only = {*self.admin.get_readonly_fields(request, record)}
            if overrides(self.admin, "get_form"):
                # With `change` Django would leave out what is read-only for this user.
                form = self.admin.get_form(request, record, fields=None)
                on_page &= {*form.base_fields, *read_only}
            names |= on_page | read_only
        key = self.admin.model._meta.pk
        return frozenset(str(name) for name in names if not callable(name)) | {key.name}

    def _first(self, request: HttpRequest, rows: QuerySet[Any]) -> Model | None:
        """A record that the caller may see, out of the first ones. Any order will do."""
        most = FIRST_ROWS if self.checks_rows_one_by_one(request) else 1
        records = rows.order_by()[:most]
        return next((one for one in records if self.may_view_object(request, one)), None)

    def checks_rows_one_by_one(self, request: HttpRequest) -> bool:
        return any(
            looks_at_object(partial(getattr(self.admin, name), request), self.admin.model)
            for name in VIEW_METHODS
            if overrides(self.admin, name)
        )

    def may_view_object(self, request: HttpRequest, obj: Model) -> bool:
        return all(rule(request, obj) for rule in self._rules())

    def is_constant(self) -> bool:
        gate = getattr(self.admin.admin_site.has_permission, "__func__", None)
        is_own = overrides(self.admin, *OWN_METHODS) or gate is not AdminSite.has_permission
        return not is_own and has_plain_manager(self.admin.model)


def overrides(model_admin: ModelAdmin[Any], *names: str) -> bool:
    """Return whether the class of the site replaces any of these methods of Django's."""
    kind = type(model_admin)
    # A loop, since each call of a tool would enter a generator a hundred times.
    for name in names:  # noqa: SIM110
        if getattr(kind, name) is not getattr(ModelAdmin, name):
            return True
    return False


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
        model_admin = self.admin_of(model)
        if model_admin is not None:
            return AdminSource(model_admin)
        is_guarded = any(model in site._registry for site in self.sites)
        return None if is_guarded or missing_sites() else otherwise

    def admin_of(self, model: type[Model]) -> ModelAdmin[Any] | None:
        """The ModelAdmin of a model on the first site that lets the user in."""
        for site in self.sites:
            if model in site._registry and self.is_open(site):
                return site._registry[model]
        return None

    def is_open(self, site: AdminSite) -> bool:
        if site not in self._is_open:
            self._is_open[site] = site.has_permission(self.request)
        return self._is_open[site]


# Exposures on a ModelAdmin: `mcp_expose mcp_fields mcp_computed mcp_exclude_fields mcp_actions`.


def exposures_of_admins() -> dict[type[Model], type[ModelExposure]]:
    """An exposure for each ModelAdmin. The first site with `mcp_expose = True` wins, else the
    first that has the model; it waits for staff then."""
    found: dict[type[Model], type[ModelExposure]] = {}
    # Some packages register classes that are no models.
    model: Any
    for site in admin_sites():
        for model, model_admin in site._registry.items():
            is_offered = bool(getattr(model_admin, "mcp_expose", False))
            is_waiting = issubclass(found.get(model, WaitingExposure), WaitingExposure)
            is_better = is_waiting and (is_offered or model not in found)
            if not (is_better and issubclass(model, Model)):
                continue
            if is_offered or staff_may_open(model):
                base = ModelExposure if is_offered else WaitingExposure
                made = exposure_of(model_admin, base=base)
                if made.fields:
                    found[model] = made
    for model, places in inline_places().items():
        if staff_may_open(model):
            found[model] = exposure_of_inlines(places)
    return found


def staff_may_open(model: type[Model]) -> bool:
    names = get_config().staff_may_open
    return names is None or is_named_in(names, model)


def exposure_of(
    model_admin: ModelAdmin[Any], *, base: type[ModelExposure] = ModelExposure
) -> type[ModelExposure]:
    model = model_admin.model
    named = getattr(model_admin, "mcp_fields", None)
    hidden = set(getattr(model_admin, "mcp_exclude_fields", ()))
    searched = (path.lstrip("^=@") for path in model_admin.search_fields)
    texts, doubtful = [*model_admin.list_display, *searched], list[str]()
    if named is not None:
        fields = [name for name in named if name not in hidden]
    else:
        names = [name for name in admin_fields(model_admin) if name not in hidden]
        fields = [name for name in names if not looks_secret(model, name, listed=texts)]
        doubtful = [
            name
            for name in names
            if name not in fields and not looks_secret(model, name, listed=[name])
        ]
        fields += currencies(model, fields)
    computed = getattr(model_admin, "mcp_computed", None)
    is_narrowed = any(hasattr(model_admin, name) for name in ("mcp_fields", "mcp_exclude_fields"))
    # Staff open the list as it is, unless code says what may be shown.
    if computed is None and (is_narrowed or not issubclass(base, WaitingExposure)):
        computed = ()
    listed = (one[0] if isinstance(one, list | tuple) else one for one in model_admin.list_filter)
    filters = [path for path in listed if isinstance(path, str) and is_open(model, path, texts)]
    search = [
        path for path in model_admin.search_fields if is_open(model, path.lstrip("^=@"), texts)
    ]
    # What can stand for a record, out of the columns that records show. `__str__` may tell more.
    labels = [name for name in texts if name in fields and can_be_label(model, name)]
    attributes = {
        "fields": tuple(fields),
        "doubtful_fields": tuple(doubtful),
        "computed": None if computed is None else tuple(computed),
        # It takes every spelling of a path out of each use, and what lies behind it.
        "exclude": tuple(hidden),
        "more_filter_fields": tuple(name for name in filters if name not in fields),
        "search_fields": tuple(search),
        "label_fields": tuple(labels[:1]),
        **order_of(model_admin),
        "actions": tuple(getattr(model_admin, "mcp_actions", ())),
        "__module__": type(model_admin).__module__,
    }
    return type(f"{type(model_admin).__name__}Exposure", (base,), attributes)


class InlineExposure(WaitingExposure):
    """Rows that the admin shows only in the forms of other records: those of the records that it
    shows to this request.
    """

    #: The ModelAdmins with their inlines of the model.
    places: Sequence[tuple[ModelAdmin[Any], InlineModelAdmin[Any, Any]]] = ()

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(self._open_places(request))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        shown = Q(pk__in=())
        for model_admin, inline in self._open_places(request):
            records = model_admin.get_queryset(request).order_by()
            rows = inline.get_queryset(request).filter(of_parents(inline, records))
            shown |= Q(pk__in=rows.order_by().values("pk"))
        return self.model._default_manager.filter(shown)

    def _open_places(self, request: HttpRequest) -> list[tuple[Any, Any]]:
        """Those whose records are not judged one by one: rows could not be counted then."""
        gates = Gates(request)
        return [
            (model_admin, inline)
            for model_admin, inline in self.places
            for parent in [AdminSource(model_admin)]
            if gates.is_open(model_admin.admin_site)
            and parent.may_view(request)
            and not parent.checks_rows_one_by_one(request)
            and not looks_at_object(
                partial(inline.has_view_permission, request), model_admin.model
            )
        ]


def of_parents(inline: Any, parents: QuerySet[Any]) -> Q | None:
    """Return the condition for the rows of an inline that belong to one of these records: by a
    foreign key, or by a generic one. None: neither, as where formsets find their rows themselves.
    """
    if hasattr(inline, "ct_field"):
        from django.contrib.contenttypes.models import ContentType

        kind = ContentType.objects.db_manager(parents.db).get_for_model(parents.model)
        column = inline.model._meta.get_field(inline.ct_fk_field)
        keys = parents.values_list(Cast("pk", output_field=column))
        return Q((inline.ct_field, kind), (f"{inline.ct_fk_field}__in", keys))
    key = parent_key(inline, parents.model)
    if key is None:
        return None
    return Q((f"{key.name}__in", parents.values(key.target_field.attname)))


def parent_key(inline: Any, parent: type[Model]) -> Any:
    """Return the foreign key by which the rows of an inline belong to a record, or None."""
    return _get_foreign_key(parent, inline.model, fk_name=inline.fk_name, can_fail=True)


#: Where code of the site may choose what a form shows to whom: which inlines, which columns of
#: them, and which rows.
PAGE_METHODS = ("get_inlines", "get_inline_instances", "get_formsets_with_inlines")
INLINE_METHODS = ("get_formset", "get_fields", "get_exclude", "get_fieldsets")
FORMSET_METHODS = ("__init__", "get_queryset")


def inline_places() -> dict[type[Model], list[tuple[ModelAdmin[Any], Any]]]:
    """Return the inlines of models that no site has, by model, but for those where code of the
    site could choose by the request what is shown.
    """
    found: dict[type[Model], list[tuple[ModelAdmin[Any], Any]]] = {}
    registered = {model for site in admin_sites() for model in site._registry}
    model: Any
    for site in admin_sites():
        for model, model_admin in site._registry.items():
            # Some packages register classes that are no models.
            is_fixed = issubclass(model, Model) and not overrides(model_admin, *PAGE_METHODS)
            for kind in model_admin.inlines if is_fixed else ():
                methods = [getattr(kind, name) for name in INLINE_METHODS]
                methods += [getattr(kind.formset, name) for name in FORMSET_METHODS]
                if (
                    kind.model not in registered
                    and not kind.model._meta.auto_created
                    and (hasattr(kind, "ct_field") or parent_key(kind, model))
                    and all(method.__module__.startswith("django.") for method in methods)
                ):
                    found.setdefault(kind.model, []).append((model_admin, kind(model, site)))
    return found


def exposure_of_inlines(places: Sequence[tuple[ModelAdmin[Any], Any]]) -> type[ModelExposure]:
    """Return an exposure of the columns that each of these inlines of a model shows, and of those
    that say to which record a row belongs.
    """
    columns, links = [], []
    for model_admin, inline in places:
        # A ModelAdmin says in these what its list has.
        inline.list_display = inline.list_filter = inline.search_fields = inline.mcp_computed = ()
        columns.append({*exposure_of(inline).fields})
        if hasattr(inline, "ct_field"):
            links += [inline.ct_field, inline.ct_fk_field]
        else:
            links.append(parent_key(inline, model_admin.model).name)
    made = exposure_of(places[0][1], base=InlineExposure)
    names = [name for name in made.fields if all(name in shown for shown in columns)]
    made.fields = tuple(dict.fromkeys([*names, *links]))
    made.places = places  # type: ignore[attr-defined]
    return made


def can_be_label(model: type[Model], name: str) -> bool:
    """Whether it is a column of the model, and a short text that people tell records by."""
    try:
        field = model._meta.get_field(name)
    except FieldDoesNotExist:  # a path through relations
        return False
    return (
        isinstance(field, CharField)
        and kind_of(field) == "text"
        and not (field.primary_key or choices_of(field))
        and not looks_secret(model, name, listed=[name])
    )


def order_of(model_admin: ModelAdmin[Any]) -> dict[str, Any]:
    """The order of the admin's list: its own, and else that of the model. One that has an
    expression in it is not taken over.
    """
    otherwise: Any = model_admin.opts.ordering
    if overrides(model_admin, "get_ordering"):

        def get_ordering(self: ModelExposure, request: HttpRequest) -> Sequence[Any]:
            return model_admin.get_ordering(request) or otherwise or ()

        return {"get_ordering": get_ordering}
    names = tuple(model_admin.ordering or otherwise or ())
    return {"ordering": names if all(isinstance(name, str) for name in names) else ()}


def admin_fields(model_admin: ModelAdmin[Any]) -> Iterator[str]:
    """Yield the key, and columns and relations that list and form show."""
    model = model_admin.model
    names: Iterable[Any] = (
        *(part.name for part in model._meta.pk_fields),
        *model_admin.list_display,
        *form_fields(model_admin),
        *model_admin.readonly_fields,
    )
    for name in dict.fromkeys(name for name in names if isinstance(name, str)):
        try:
            field = model._meta.get_field(name)
        except FieldDoesNotExist:
            continue
        if (field.concrete and not field.many_to_many) or isinstance(field, ManyToManyField):
            yield name


def currencies(model: type[Model], names: Iterable[str]) -> list[str]:
    """Columns of django-money that no form shows, and without which an amount cannot be read."""
    amounts = set(names)
    return [
        field.name
        for field in model._meta.concrete_fields
        if getattr(getattr(field, "price_field", None), "name", None) in amounts
        and field.name not in amounts
    ]


def form_fields(model_admin: ModelAdmin[Any]) -> list[Any]:
    """Return the names of the fields of the admin's form, as the class declares them."""
    if model_admin.fieldsets:
        return list(flatten_fieldsets(model_admin.fieldsets))
    if model_admin.fields:
        return list(flatten(model_admin.fields))
    opts = model_admin.model._meta
    meta: Any = getattr(model_admin.form, "_meta", ModelFormOptions())
    # Django asks the form only where the ModelAdmin does not say.
    left_out = (meta.exclude if model_admin.exclude is None else model_admin.exclude) or ()
    # As in the form of the admin: none with a table of the site's own in between.
    sets = [one for one in opts.many_to_many if one.remote_field.through._meta.auto_created]
    names = [one.name for one in (*opts.concrete_fields, *sets) if one.editable]
    if meta.fields not in (None, ALL_FIELDS):
        names = [name for name in names if name in meta.fields]
    return [*(name for name in names if name not in left_out), *model_admin.form.declared_fields]


def is_open(model: type[Model], path: str, listed: Container[str]) -> bool:
    """Return whether a path exists and no part of it looks secret."""
    try:
        steps = resolve(model, path).steps
    except ImproperlyConfigured:
        return False
    own = listed if "__" not in path else ()
    return not any(looks_secret(owner, name, listed=own) for owner, name in steps)
