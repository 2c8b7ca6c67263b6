"""Who may change what: levels, scopes and switches, then the ModelAdmin of the site."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from typing import Any

from django.db import connections
from django.db.models import F, ManyToManyField, Model, Q, QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.dateparse import parse_datetime

from mcp_django.exceptions import NotFound, QueryError, ToolError
from mcp_django.exposure.admin_bridge.dry_runs import current
from mcp_django.exposure.limits import contended, raise_lost_database
from mcp_django.exposure.options import ModelExposure, is_secret
from mcp_django.exposure.paths import parse_key
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.find import missing_record
from mcp_django.exposure.query.guard import is_plain
from mcp_django.exposure.query.related import find_object
from mcp_django.exposure.query.serializers import as_text, utc
from mcp_django.levels import Level
from mcp_django.principal import DELETE, WRITE

# Versions of records, so that nobody overwrites what somebody else has changed meanwhile.

#: Digits of a version: as many as nobody hits by chance.
SIZE = 18
#: Members of one relation that count, the first by their keys.
MOST_MEMBERS = 10_000


def version_of(obj: Model, *, rows: Iterable[Model] = (), values: Iterable[Any] = ()) -> str:
    """The version of a row that was read from the database: another one after any change.

    All columns count, and the keys of all members of many-to-many relations: those that a caller
    may not see, too. With the key of the site in it, nobody can find out by trying what is in
    them. `rows` are rows of other tables that belong to the record, and `values` what else its
    form has.
    """
    parts = [*state_of(obj), members_of(obj), [*map(state_of, rows), *values]]
    text = json.dumps(parts, default=as_text)
    return salted_hmac("mcp_django.version", text, algorithm="sha256").hexdigest()[:SIZE]


def state_of(obj: Model) -> list[Any]:
    columns = [[field.attname, written(field, obj)] for field in obj._meta.concrete_fields]
    return [obj._meta.label_lower, columns]


def members_of(obj: Model) -> list[list[Any]]:
    """Return for each many-to-many relation its name and the keys, in one query."""
    fields: Sequence[Any] = obj._meta.many_to_many
    found = []
    for field in fields:
        if not isinstance(field, ManyToManyField):  # as packages for tags have it
            with suppress(Exception):  # the record counts without a relation that cannot be read
                members = field.value_from_object(obj)
                found.append([field.name, sorted(as_text(one) for one in members)])
            continue
        through: Any = field.remote_field.through
        theirs = through._meta.get_field(field.m2m_reverse_field_name()).attname
        rows = through._base_manager.using(obj._state.db)
        keys = rows.filter(Q((field.m2m_field_name(), obj))).values_list(theirs, flat=True)
        found.append([field.name, list(keys.order_by(theirs)[:MOST_MEMBERS])])
    return found


def written(field: Any, obj: Model) -> Any:
    try:
        return field.value_to_string(obj)
    except Exception:  # a class of the site's own that cannot show every value
        return as_text(field.value_from_object(obj))


def find_locked(rights: Rights, exposure: ModelExposure, pk: Any, *, using: str) -> Any:
    """Return the record with this key as it is now. Nobody else changes it until this transaction
    ends, so call it first there: the row that is locked is judged, and is the one that changes.

    Raises NotFound as `find_object` does, and ToolError where others hold the row for too long.
    """
    model = exposure.model
    rows = rights.rows(model)
    if not is_plain(rows.query) or rights.checks_rows_one_by_one(model):
        # Nobody waits for a row that they may not see, and they may not see it any more after the
        # wait. No manager: a join to what may be missing cannot be locked, nor can DISTINCT.
        key = find_object(rights, exposure, pk, using=using).pk
        lock(QuerySet(model, using=using), key)
        return find_object(rights, exposure, pk, using=using)
    with suppress(QueryError):
        (key,) = parse_key(model, pk, using=using)
        obj = lock(rows.using(using).select_related(None), key)
        if obj is not None:
            return obj
    raise missing_record(exposure, pk)


def lock(rows: QuerySet[Any], pk: Any) -> Model | None:
    """Return the row with this key, if there is one, and lock it."""
    key = rows.model._meta.pk_fields[0].attname
    with contended():
        if not connections[rows.db].features.has_select_for_update and current.get() is None:
            # SQLite: who writes first is the only writer until the end. A dry run needs no such
            # lock: what it writes is taken back.
            QuerySet(rows.model, using=rows.db).filter(pk=pk).update(**{key: F(key)})
        locked: Model | None = rows.filter(pk=pk).select_for_update().order_by().first()
        return locked


def stored_row(obj: Model, model: type[Model]) -> Model | None:
    """Return the object if it has all columns of its row, and else read the row: code of the site
    may have left some out, or made the object of another class.
    """
    if type(obj) is model and not obj.get_deferred_fields():
        return obj
    return model._base_manager.using(obj._state.db).filter(pk=obj.pk).first()


def check_version(current: str, expected: str) -> None:
    """Raise ToolError unless the row that was locked has still the version that was read."""
    if not constant_time_compare(current, expected):
        raise ToolError(
            "This record was changed after you read it. Nothing was changed by this call. Read "
            f"the record again; its version is now {current}."
        )


# Changes that are wanted only if nobody made another one since a time.


def check_unmodified(exposure: ModelExposure, obj: Any, since: str) -> None:
    """Raise ToolError unless the record, which is locked, was last changed by then."""
    if not exposure.modified_field:
        raise ToolError(
            f"It is unknown when records of {exposure.label} were changed. Leave out "
            "if_unmodified_since, and send the version that get_record shows."
        )
    limit = None
    with suppress(ValueError):
        limit = parse_datetime(since)
    if limit is None:
        raise ToolError("if_unmodified_since takes a time such as 2026-01-31T14:30:00+00:00.")
    changed = obj
    for name in exposure.modified_field.split("__"):
        changed = getattr(changed, name, None)
    if isinstance(changed, datetime) and as_aware(changed) > as_aware(limit):
        raise ToolError(
            "This record was changed after that time. Nothing was changed by this call. Read the "
            f"record again; it was last changed at {utc(changed)}."
        )
    if isinstance(changed, date) and not isinstance(changed, datetime) and changed > limit.date():
        raise ToolError(f"This record was changed on {changed}, after that time. Read it again.")


def as_aware(value: datetime) -> datetime:
    return timezone.make_aware(value) if timezone.is_naive(value) else value


logger = logging.getLogger("mcp_django")

#: What one can do, with the scope that a credential needs for it.
ADD, CHANGE, REMOVE = "add", "change", "delete"
SCOPES = {ADD: WRITE, CHANGE: WRITE, REMOVE: DELETE}


def is_writer(rights: Rights, verb: str) -> bool:
    return not rights.is_read_only and rights.has_scopes(frozenset({SCOPES[verb]}))


def may(rights: Rights, model: type[Model], verb: str, obj: Any = None) -> bool:
    """Whether level, switches, scopes and the ModelAdmin permit it: of any object, or of one."""
    if not is_writer(rights, verb) or rights.level(model) < Level.WRITE:
        return False
    model_admin = rights.model_admin(model)
    if model_admin is None:
        return False
    method, is_allowed = getattr(model_admin, f"has_{verb}_permission"), False
    # Code of the site. A rule that fails has not said yes.
    with tolerant(f"Whether {model._meta.label} may be changed is unknown."):
        is_allowed = method(rights.request) if verb == ADD else method(rights.request, obj)
    return bool(is_allowed)


@contextmanager
def tolerant(sentence: str) -> Iterator[None]:
    """Log what code of the site raises in the block, which ends there. A lost database passes."""
    try:
        yield
    except Exception as error:
        raise_lost_database(error)
        logger.exception(sentence)


def viewing_admin(rights: Rights, exposure: ModelExposure, obj: Any) -> Any:
    """Return the ModelAdmin that shows this caller the page of a record, or None. Nobody looks at
    the record where `judges_pages` says no.
    """
    model_admin = rights.model_admin(exposure.model)
    if model_admin is None or not judges_pages(rights, exposure):
        return model_admin
    may_view = False
    with tolerant(f"Whether pages of {exposure.label} are shown is unknown."):
        if exposure.decides_itself:
            # The rows of the exposure may be others than those of the admin.
            rows = model_admin.get_queryset(rights.request).using(obj._state.db)
            obj = rows.filter(pk=obj.pk).first()
        may_view = obj is not None and model_admin.has_view_or_change_permission(
            rights.request, obj
        )
    return model_admin if may_view else None


def judges_pages(rights: Rights, exposure: ModelExposure) -> bool:
    """Return whether code of the site decides who may view a record in the admin. If not, it is
    Django's own rule, which was asked already: the model is open to the caller.
    """
    model_admin = rights.model_admin(exposure.model)
    if model_admin is None or exposure.decides_itself:
        return model_admin is not None
    # The admin is optional; here it is there.
    from mcp_django.exposure.admin_sites import VIEW_METHODS, overrides

    return overrides(model_admin, *VIEW_METHODS, "has_change_permission")


def model_admin_for(rights: Rights, exposure: ModelExposure, verb: str) -> Any:
    """The ModelAdmin to do it through. Raises NotFound, with the models where one may."""
    if may(rights, exposure.model, verb):
        return rights.model_admin(exposure.model)
    labels = [one.label for one in rights.exposures() if may(rights, one.model, verb)]
    raise NotFound(
        f"You cannot {verb} records of {exposure.label}. You can {verb} those of: "
        f"{', '.join(labels[:30])}."
        if labels
        else f"You cannot {verb} records of {exposure.label}."
    )


def settable(
    rights: Rights, exposure: ModelExposure, names: Iterable[str], *, obj: Model | None = None
) -> list[str]:
    """Return those of the names that this caller may set in a form: of a new record, or of `obj`.

    Exactly `write_fields` if the site lists them. Otherwise all but those in `exclude` and those
    that look secret and are not named in `fields`. Never a field that staff took out of records,
    or that `get_fields` hides from this caller, or that this caller gets masked.
    """
    named = {path.split("__")[0] for path in exposure.fields}
    hidden = {path.split("__")[0] for path in exposure.exclude}
    hidden |= {one[0] for one in rights.exposed.withheld.get(exposure.model, ()) if len(one) == 1}
    hidden |= rights.masks(exposure.model).keys()
    shown = exposure.get_fields(rights.request)
    if shown is not None:
        hidden |= named - set(shown)
    if obj is not None:
        # With another key the form would save another record, and leave this one as it is.
        hidden |= {field.name for field in exposure.model._meta.pk_fields}
    listed = exposure.write_fields
    return [
        name
        for name in names
        if name not in hidden
        and (
            name in named or not is_secret(exposure.model, name)
            if listed is None
            else name in listed
        )
    ]


#: Said of a record that is missing, where its page in the admin may make it.
OWN_RECORD = (
    "If there is none yet because its page in the admin makes it, update_record does so, too: "
    "describe_model has its key."
)


def makes_own_records(rights: Rights, model: type[Model]) -> bool:
    """Return whether the pages of the admin may make the record that they show, as those of the
    only record of a model do: nobody adds one, and code of the site opens the list or the record.
    """
    model_admin = rights.model_admin(model)
    if model_admin is None:
        return False
    # The admin is optional; here it is there.
    from mcp_django.exposure.admin_sites import overrides

    is_own = overrides(model_admin, "changelist_view", "change_view")
    return is_own and may(rights, model, CHANGE) and not may(rights, model, ADD)


def find_or_advise(rights: Rights, exposure: ModelExposure, pk: Any, *, using: str) -> Any:
    """Return the record as `find_object` does, whose NotFound says here how it could be made."""
    try:
        return find_object(rights, exposure, pk, using=using)
    except NotFound as error:
        if not makes_own_records(rights, exposure.model):
            raise
        raise NotFound(f"{error} {OWN_RECORD}") from None


def asks_site(rights: Rights) -> bool:
    """Whether code of the site decides about any model that could be written."""
    models = [one.model for one in rights.exposures() if rights.level(one.model) >= Level.WRITE]
    admins = [rights.model_admin(model) for model in models]
    return any(one is not None and asks_own_code(one) for one in admins)


def asks_own_code(model_admin: Any) -> bool:
    # The admin is optional; here it is there.
    from django.contrib.admin import AdminSite

    from mcp_django.exposure.admin_sites import overrides

    gate = getattr(model_admin.admin_site.has_permission, "__func__", None)
    is_own = gate is not AdminSite.has_permission
    return is_own or overrides(model_admin, *(f"has_{verb}_permission" for verb in SCOPES))
