"""Create, update and delete: rights, the transaction, the admin, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from django.db import DataError, IntegrityError, OperationalError, router, transaction
from django.urls import NoReverseMatch

from mcp_django.context import CallContext
from mcp_django.exceptions import QueryError, ToolError
from mcp_django.exposure import confirmations
from mcp_django.exposure.admin_deletes import Deletion, Preview
from mcp_django.exposure.admin_dry_runs import dry_run as trying
from mcp_django.exposure.admin_forms import RecordForm, Saved
from mcp_django.exposure.admin_requests import Said
from mcp_django.exposure.budget import is_timeout
from mcp_django.exposure.find import get_record
from mcp_django.exposure.locks import contended
from mcp_django.exposure.objects import find_all, find_keys, find_object
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.serializers import exact_integer
from mcp_django.exposure.unmodified import check_unmodified
from mcp_django.exposure.versions import check_version, lock, version_of
from mcp_django.exposure.write_rights import ADD, CHANGE, REMOVE, may, model_admin_for

#: Records that a preview of a deletion shows, and keys that it names.
MOST_SHOWN, MOST_KEYS = 3, 100
#: Members of answers that are true only of what was done. The record is in the difference.
ONLY_DONE = ("pk", "version", "record", "messages", "confirmation")


def create(
    context: CallContext,
    rights: Rights,
    *,
    model: str,
    values: Mapping[str, Any],
    inlines: Mapping[str, Any],
    dry_run: bool = False,
) -> dict[str, Any]:
    """The answer of `create_record`. Raises ToolError when nothing was created."""
    exposure = rights.exposure(model)
    model_admin = model_admin_for(rights, exposure, ADD)
    using = router.db_for_write(exposure.model)

    def work() -> dict[str, Any]:
        saved = RecordForm(context, rights, exposure, model_admin).save(values, inlines)
        return answer_of(rights, exposure, saved, using=using)

    return perform(rights, work, using=using, dry_run=dry_run)


def update(
    context: CallContext,
    rights: Rights,
    *,
    model: str,
    pk: Any,
    values: Mapping[str, Any],
    inlines: Mapping[str, Any],
    version: str | None = None,
    since: str | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """The answer of `update_record`. Raises ToolError when nothing was changed."""
    exposure = rights.exposure(model)
    using = router.db_for_write(exposure.model)
    key = find_object(rights, exposure, pk, using=using).pk
    model_admin = model_admin_for(rights, exposure, CHANGE)

    def work() -> dict[str, Any]:
        # Whoever writes second reads what the first has written, and keeps it.
        row = lock(exposure.model, key, using=using)
        obj = find_object(rights, exposure, pk, using=using)
        refuse_read_only(rights, exposure, obj)
        if version is not None and row is not None:
            check_version(row, version)
        if since is not None:
            check_unmodified(exposure, obj, since)
        saved = RecordForm(context, rights, exposure, model_admin, obj=obj).save(values, inlines)
        return answer_of(rights, exposure, saved, using=using)

    return perform(rights, work, using=using, dry_run=dry_run)


def check(
    context: CallContext,
    rights: Rights,
    *,
    model: str,
    pk: Any = None,
    values: Mapping[str, Any] | None = None,
    inlines: Mapping[str, Any] | None = None,
) -> None:
    """Raise ToolError where `create`, or `update` of the record with a key, could only fail: for
    rights that are missing, and for values that no form takes. Nothing is saved.
    """
    exposure = rights.exposure(model)
    obj = None
    if pk is not None:
        obj = find_object(rights, exposure, pk, using=router.db_for_write(exposure.model))
    model_admin = model_admin_for(rights, exposure, ADD if obj is None else CHANGE)
    if obj is not None:
        refuse_read_only(rights, exposure, obj)
    RecordForm(context, rights, exposure, model_admin, obj=obj).check(values or {}, inlines or {})


def refuse_read_only(rights: Rights, exposure: ModelExposure, obj: Any) -> None:
    if not may(rights, exposure.model, CHANGE, obj):
        raise ToolError(f"The record with the key {obj.pk} is read-only for you.")


def delete(
    context: CallContext,
    rights: Rights,
    *,
    model: str,
    pk: Any,
    query: Mapping[str, Any],
    confirmation: str | None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """The answer of `delete_record`: without a confirmation, what would be deleted."""
    exposure = rights.exposure(model)
    model_admin = model_admin_for(rights, exposure, REMOVE)
    using = router.db_for_write(exposure.model)
    asked = {"model": exposure.label, "pk": pk, **query}

    def work() -> dict[str, Any]:
        objects = selected(rights, exposure, pk, query, using=using)
        deletion = Deletion(context, rights, exposure, model_admin, objects)
        preview = deletion.preview()
        if not preview.is_possible or not (confirmation or dry_run):
            return shown(rights, exposure, objects, preview, asked, using=using)
        if not dry_run:
            confirmations.redeem(
                rights, confirmation, tool="delete_record", arguments=asked, digest=preview.digest
            )
        keys = [key_as_json(one.pk) for one in objects]
        said = deletion.execute()
        found = {"deleted": dict(preview.counts), "keys": keys[:MOST_KEYS]}
        return with_messages(found, said)

    return perform(rights, work, using=using, dry_run=dry_run)


def perform(
    rights: Rights,
    work: Callable[[], dict[str, Any]],
    *,
    using: str,
    dry_run: bool,
) -> dict[str, Any]:
    """Do it in one transaction, or try it and take it back."""
    if not dry_run:
        with writing(using):
            return work()
    with trying(rights) as difference, writing(using):
        answer = work()
    kept = {name: one for name, one in answer.items() if name not in ONLY_DONE}
    return {"dry_run": True, **kept, "difference": difference.as_json()}


def selected(
    rights: Rights, exposure: ModelExposure, pk: Any, query: Mapping[str, Any], *, using: str
) -> list[Any]:
    # Empty filters would be all records, which nobody asks for by saying nothing.
    narrows = any(query.values()) and all(query.get("any_of") or [True])
    if (pk is None) != narrows or (query and not narrows):
        raise QueryError('Name the records by "pk", one key or a list, or by "filters".')
    if pk is not None and not isinstance(pk, list):
        return [find_object(rights, exposure, pk, using=using)]
    # Repeated keys are one record.
    keys = find_keys(rights, exposure, query, using=using) if pk is None else unique(pk)
    if not keys:
        raise QueryError(f"No {exposure.label} matches. Nothing was done.")
    return find_all(rights, exposure, keys, using=using)


def unique(keys: Sequence[Any]) -> list[Any]:
    return list({str(key): key for key in keys}.values())


def shown(
    rights: Rights,
    exposure: ModelExposure,
    objects: Sequence[Any],
    preview: Preview,
    asked: Mapping[str, Any],
    *,
    using: str,
) -> dict[str, Any]:
    """What a person needs to know before agreeing."""
    found: dict[str, Any] = {
        "deleted": None,
        "records": len(objects),
        "keys": [key_as_json(one.pk) for one in objects[:MOST_KEYS]],
        "examples": [
            record_of(rights, exposure, one, using=using) for one in objects[:MOST_SHOWN]
        ],
        **preview.as_json(),
    }
    if not preview.is_possible:
        return found | {"next": "These records cannot be deleted. Nothing was done."}
    token = confirmations.issue(
        rights, tool="delete_record", arguments=asked, digest=preview.digest
    )
    return found | {
        "confirmation": token,
        "next": "Nothing was deleted. Show this to the person; if they agree, repeat the call "
        "with this confirmation.",
    }


@contextmanager
def writing(using: str) -> Iterator[None]:
    """One transaction, and in words what databases refuse and views cannot do."""
    try:
        with contended(), transaction.atomic(using=using):
            yield
    except NoReverseMatch as error:
        raise ToolError(
            "Nothing was saved: the admin is not among the URLs of this site. Tell the person."
        ) from error
    except IntegrityError as error:
        raise ToolError(
            "Nothing was saved: the database refuses this beside the records that are there. "
            "Others may depend on it, or have the same values."
        ) from error
    except DataError as error:
        raise ToolError(
            "Nothing was saved: the database cannot hold one of the values."
        ) from error
    except OperationalError as error:
        if not is_timeout(error):
            raise
        raise ToolError("Nothing was saved: the database took too long.") from error


def answer_of(
    rights: Rights, exposure: ModelExposure, saved: Saved, *, using: str
) -> dict[str, Any]:
    """The record as this caller reads it, and what changed."""
    found: dict[str, Any] = {"pk": key_as_json(saved.obj.pk), "changed": list(saved.changed)}
    row = exposure.model._base_manager.using(using).filter(pk=saved.obj.pk).first()
    if row is not None:
        found["version"] = version_of(row)
    found["record"] = record_of(rights, exposure, saved.obj, using=using)
    return with_messages(found, saved.said)


def record_of(rights: Rights, exposure: ModelExposure, obj: Any, *, using: str) -> Any:
    try:
        return msgspec.Raw(get_record(rights, exposure, str(obj.pk), using=using))
    except ToolError:
        # It may have left the rows that this caller sees, or be too long for an answer.
        return None


def with_messages(found: dict[str, Any], said: Sequence[Said]) -> dict[str, Any]:
    told = [{"level": one.level_name, "text": one.text} for one in said]
    return {**found, "messages": told} if told else found


def key_as_json(key: Any) -> Any:
    if key is None:  # the site has removed it at once
        return None
    return exact_integer(key) if isinstance(key, int) else str(key)
