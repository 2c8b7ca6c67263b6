"""Deletions through the admin: what its page would show, and then what it would do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.actions import delete_selected
from django.contrib.admin.utils import NestedObjects, quote
from django.db import router
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from mcp_django.context import CallContext, running
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.compat import parts_of
from mcp_django.exposure.admin_bridge.requests import (
    AdminRequest,
    CapturedMessage,
    Recorder,
    admin_request,
    path_of,
    site_code,
    without_reports,
)
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.related import countable
from mcp_django.exposure.query.serializers import plain_text
from mcp_django.exposure.questions.words import counted_names, named_records

#: What the button of the page sends.
CONFIRMED = ("post", "yes")


@dataclass(frozen=True, kw_only=True)
class Preview:
    #: As `visible_part` gives it.
    visible: Mapping[str, Any]
    is_possible: bool
    #: Of everything, including what is hidden.
    digest: str


def visible_part(
    rights: Rights,
    objects: Sequence[Any],
    counts: Mapping[str, int],
    *,
    lacking: Sequence[str] = (),
    protected: Sequence[Any] = (),
) -> dict[str, Any]:
    """What would be deleted with these objects, as far as this caller may know: the numbers of
    records that the caller may see, by the label of their model, and whether there are others.

    `counts` and the rest are what the admin shows: names and texts only, so the objects are
    collected again.
    """
    if not counts and not protected:
        return {"and_other_records": True} if lacking else {}
    using = router.db_for_write(type(objects[0]))
    collector = NestedObjects(using=using, origin=objects)
    collector.collect(objects)
    all_objects = [one for some in collector.model_objs.values() for one in some]
    goes = countable(rights, all_objects, using=using)
    holds = countable(rights, collector.protected if protected else (), using=using)
    # A site may report fewer deletions than Django expects.
    would_delete = {
        model._meta.label_lower: min(
            len(rows), counts.get(str(model._meta.verbose_name_plural), 0)
        )
        for model, rows in goes.items()
    }
    protected_by = {model._meta.label_lower: len(rows) for model, rows in holds.items()}
    labels = {
        str(model._meta.verbose_name): model._meta.label_lower
        for model, rows in goes.items()
        if rows
    }
    found = {
        "would_delete": {label: count for label, count in would_delete.items() if count},
        "and_other_records": (
            sum(would_delete.values()) != sum(counts.values())
            or sum(protected_by.values()) != len(protected)
            or not labels.keys() >= set(lacking)
        ),
        "protected_by": {label: count for label, count in protected_by.items() if count},
        "permission_lacking_for": sorted(labels[name] for name in lacking if name in labels),
    }
    return {name: value for name, value in found.items() if value}


def deletion_words(visible: Mapping[str, Any], model: type[Model], count: int) -> str:
    """Sentences about a deletion of so many records of a model, of which `visible` is the part
    that the caller may know.
    """
    numbers = dict(visible.get("would_delete", {}))
    label = model._meta.label_lower
    numbers[label] = numbers.get(label, 0) - count
    sentences = []
    if along := counted_names(numbers):
        sentences.append(f"Deleted along with {'it' if count == 1 else 'them'}: {along}.")
    if held := counted_names(visible.get("protected_by", {})):
        sentences.append(f"This is not possible because of {held}.")
    if lacking := visible.get("permission_lacking_for"):
        sentences.append(f"You may not delete records of {', '.join(lacking)}.")
    if visible.get("and_other_records"):
        sentences.append("Other records that are not named here are affected as well.")
    return " ".join(sentences)


def confirmation_text(rights: Rights, context: Mapping[str, Any]) -> str | None:
    """What to show in place of the text of a page, if this is the page by which the admin asks
    whether to delete what was selected: it lists every object, whoever may see it.
    """
    objects = list(context.get("queryset") or ())
    if "deletable_objects" not in context or not objects:
        return None
    part = visible_part(
        rights,
        objects,
        texts(context.get("model_count", ())),
        lacking=[str(one) for one in context.get("perms_lacking", ())],
        protected=list(context.get("protected", ())),
    )
    number = named_records((), len(objects))
    told = deletion_words(part, type(objects[0]), len(objects))
    return f"{number} to be deleted. {told}".rstrip()


@dataclass(frozen=True, eq=False)
class Deletion:
    """Records of one model to delete. The caller may see them and may delete records of it.

    One record is deleted by its page, several as `delete_selected` does it.
    """

    context: CallContext
    rights: Rights
    exposure: ModelExposure
    admin: Any
    objects: Sequence[Any]

    @property
    def keys(self) -> list[Any]:
        return [one.pk for one in self.objects]

    def preview(self) -> Preview:
        """Say what the pages of the admin would list, count, lack permissions for and be held by.
        Raises ToolError for a record that this caller may not delete.
        """
        with site_code(self.admin):
            request, _ = self._request("changelist")
            one_call = copy(self.admin)
            for one in self.objects:
                if not one_call.has_delete_permission(request, one):
                    raise ToolError(f"You may not delete the record with the key {one.pk}.")
            listed, model_counts, perms_needed, objects = one_call.get_deleted_objects(
                self._queryset(one_call, request), request
            )
        counts = texts(model_counts.items())
        lacking = sorted(map(str, perms_needed))
        protected = [plain_text(one) for one in objects]
        told = [list(flat(listed)), sorted(counts.items()), lacking, protected]
        digest = json.dumps([self.exposure.label, sorted(map(str, self.keys)), told])
        return Preview(
            visible=visible_part(
                self.rights, self.objects, counts, lacking=lacking, protected=protected
            ),
            is_possible=not lacking and not protected,
            # It depends on the key of the site: nobody finds out what is hidden by trying.
            digest=salted_hmac("mcp_django.deletion", digest, algorithm="sha256").hexdigest(),
        )

    def execute(self) -> Sequence[CapturedMessage]:
        """Raises ToolError when nothing was deleted. Call it in a transaction."""
        with site_code(self.admin), running(self.context):
            if len(self.objects) > 1 and self._offers_joint():
                one_call = copy(self.admin)
                request, recorder = self._request("changelist", None, CONFIRMED)
                rows = self._queryset(one_call, request)
                for row in rows:  # Entries that are written together send no signal.
                    one_call.log_deletions(request, [row])
                one_call.delete_queryset(request, rows)
                return recorder.messages
            return [message for key in self.keys for message in self._delete(key)]

    def _request(
        self, page: str, key: Any = None, *data: tuple[str, str]
    ) -> tuple[AdminRequest, Recorder]:
        path = path_of(self.admin, page, key)
        return admin_request(self.context, self.rights, self.admin, path=path, data=data or None)

    def _queryset(self, one_call: Any, request: HttpRequest) -> Any:
        rows = one_call.get_queryset(request).filter(pk__in=self.keys)
        if len(rows) != len(self.keys):
            raise ToolError("The admin does not show all of these records. Name fewer.")
        return rows

    def _offers_joint(self) -> bool:
        """Whether the admin has Django's own action: a site may remove or replace it."""
        request, _ = self._request("changelist")
        found = copy(self.admin).get_actions(request).get(delete_selected.__name__)
        return found is not None and parts_of(found)[0] is delete_selected

    def _delete(self, key: Any) -> Sequence[CapturedMessage]:
        one_call = copy(self.admin)
        # The objects that reach `delete_model`, which a site may override.
        seen: list[Any] = []
        delete_model = one_call.delete_model

        def watched(request: HttpRequest, obj: Any) -> Any:
            seen.append(obj)
            return delete_model(request, obj)

        one_call.delete_model = watched
        request, recorder = self._request("delete", key, CONFIRMED)
        shown = plain_text(next(one for one in self.objects if one.pk == key))
        one_call.delete_view(request, quote(str(key)))
        rows = self.admin.model._base_manager.using(router.db_for_write(self.admin.model))
        if not seen and rows.filter(pk=key).exists():
            raise ToolError(
                " ".join(["Nothing was deleted.", *(one.text for one in recorder.messages)])
            )
        return without_reports(recorder.messages, shown)


def check_within(rights: Rights, model: Any, objects: Sequence[Any], *, using: str) -> None:
    """Raise ToolError where deleting objects of a model would touch models that the credential is
    not held to.
    """
    if rights.principal.restriction.models is None:
        return
    collector = NestedObjects(using=using)
    collector.collect(objects)
    touched: set[Any] = set(collector.data)
    for (field, _), changed in collector.field_updates.items():
        # Django has not read all of these rows.
        if any(rows.exists() if isinstance(rows, QuerySet) else rows for rows in changed):
            touched.add(field.model)
    for one in touched:
        # Rows between two models, and the parents of a model, are part of its records.
        owner = one._meta.auto_created or one
        if issubclass(model, owner):
            continue
        if not rights.principal.restriction.allows_model(owner._meta.label_lower):
            raise ToolError(
                "Nothing was deleted: records of other models would go along, or be changed, and "
                "this token is held to some models. Tell the person."
            )


def texts(counts: Iterable[tuple[Any, int]]) -> dict[str, int]:
    return {str(name): count for name, count in counts}


def flat(nested: Any) -> Iterator[str]:
    for one in nested:
        if isinstance(one, (list, tuple)):
            yield from flat(one)
        else:
            yield plain_text(one)
