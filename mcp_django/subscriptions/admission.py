"""Who may be notified of a change. Asked for each subscription, and again for each change.

Only keys are read. A verdict says whether `resources/read` would find the resource. Functions of
the site that make resources do not run for it.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.db.models import Model

from mcp_django.exceptions import NotFound, QueryError, ToolError
from mcp_django.exposure.limits import raise_unreachable_database
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import parse_key, spell_key
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import code_uri
from mcp_django.exposure.query.access import home_of
from mcp_django.exposure.query.find import check_shows_records, missing_record
from mcp_django.exposure.query.guard import is_plain
from mcp_django.exposure.query.related import visible_keys
from mcp_django.exposure.resources.functions import find_code_resource, not_found
from mcp_django.exposure.resources.models import file_field, key_of
from mcp_django.exposure.uris import Address, parse_uri
from mcp_django.principal import READ

Key: TypeAlias = tuple[Any, ...]

logger = logging.getLogger("mcp_django.subscriptions")


class Verdict(enum.Enum):
    #: Reading the URI would find it.
    VISIBLE = "visible"
    #: The model is there for the caller, and the record is not: deleted, or out of their rows.
    GONE = "gone"
    #: The model or the resource does not exist for the caller, who learns nothing of it.
    SILENT = "silent"


#: Which records of a model in a database exist, for callers who may see every row: one query
#: serves all of them. Make one for each batch of changes, since nothing in it is asked twice.
Existence: TypeAlias = dict[tuple[type[Model], str], dict[Key, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The record that a URI names, not yet looked for. No values: it is no key."""

    exposure: ModelExposure
    given: str | list[str]
    using: str
    values: Key | None

    @property
    def spelled(self) -> Key:
        return () if self.values is None else spell_key(self.values)


def admit_all(
    rights: Rights, uris: Iterable[str], *, existence: Existence | None = None
) -> dict[str, Verdict]:
    """The verdict on each URI: one query for all the records of a model.

    Never raises what the site raises: then the URIs of that model are SILENT. Raises the errors of
    a database that does not answer: its streams are to be notified later.
    """
    verdicts: dict[str, Verdict] = {}
    wanted: dict[tuple[ModelExposure, str], dict[str, Record]] = {}
    for uri in uris:
        try:
            record = look_up(rights, uri)
        except Exception as error:
            raise_unreachable_database(error)
            if not isinstance(error, ToolError):
                logger.exception("What a subscription is about cannot be told.")
            verdicts[uri] = Verdict.SILENT
            continue
        if record is None:
            verdicts[uri] = Verdict.VISIBLE
        elif record.values is None:
            verdicts[uri] = Verdict.GONE
        else:
            wanted.setdefault((record.exposure, record.using), {})[uri] = record
    for records in wanted.values():
        try:
            visible = visible_records(rights, records, existence=existence)
        except Exception as error:
            raise_unreachable_database(error)
            logger.exception("Who may hear of these records cannot be told.")
            verdicts.update(dict.fromkeys(records, Verdict.SILENT))
            continue
        for uri, record in records.items():
            verdicts[uri] = Verdict.VISIBLE if record.spelled in visible else Verdict.GONE
    return verdicts


def visible_records(
    rights: Rights, records: dict[str, Record], *, existence: Existence | None = None
) -> set[Key]:
    """The keys, spelled, of those that the caller may read."""
    exposure, using = next((record.exposure, record.using) for record in records.values())
    values = {record.spelled: record.values or () for record in records.values()}

    def find(keys: Iterable[Key]) -> set[Key]:
        return visible_keys(rights, exposure, map(values.__getitem__, keys), using=using)

    if existence is None or not has_every_row(rights, exposure.model):
        return find(values)
    exists = existence.setdefault((exposure.model, using), {})
    if unknown := [key for key in values if key not in exists]:
        visible = find(unknown)
        exists.update((key, key in visible) for key in unknown)
    return {key for key in values if exists[key]}


def has_every_row(rights: Rights, model: type[Model]) -> bool:
    """Whether this caller's rows are those of everybody else who has all of them."""
    return (
        rights.is_constant(model)
        and is_plain(rights.rows(model).query)
        and not rights.checks_rows_one_by_one(model)
    )


def may_subscribe(rights: Rights, uri: str) -> None:
    """Raise what reading the URI would raise, if anything.

    NotFound, in the same words for a missing and a forbidden record; QueryError for a model that
    shows no records at all.
    """
    record = look_up(rights, uri)
    if record is not None and (
        record.values is None or not visible_records(rights, {uri: record})
    ):
        raise missing_record(record.exposure, record.given)


def look_up(rights: Rights, uri: str) -> Record | None:
    """The record that a URI names; None for what exists without being looked for.

    Raises NotFound, or QueryError where no records are shown.
    """
    if not rights.has_scopes(frozenset({READ})):
        raise not_found()
    if code_uri(uri):
        record = find_code_resource(rights, uri).record_uri(uri)
        return look_up(rights, record) if record else None
    address = parse_uri(uri)
    match address.kind, address.segments:
        case "site", ():
            return None
        case "models", (label,):
            rights.exposure(label)
            return None
        case "objects" | "files", (_, *_):
            return look_up_record(rights, address)
    raise NotFound("There is no such resource.")


def look_up_record(rights: Rights, address: Address) -> Record | None:
    label, *segments = address.segments
    if address.kind == "files" and len(segments) < 2:
        raise NotFound("There is no such resource.")
    exposure = rights.exposure(label)
    check_shows_records(exposure)
    if address.kind == "files":
        file_field(rights, exposure, segments.pop())
    if not segments:
        return None
    given, using = key_of(exposure, segments), home_of(rights, exposure.model)
    try:
        values = parse_key(exposure.model, given, using=using)
    except QueryError:
        values = None
    return Record(exposure=exposure, given=given, using=using, values=values)
