"""Deleting through the admin: what its page would show, and then what it would do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.admin.actions import delete_selected
from django.contrib.admin.utils import quote
from django.db import router
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from django.utils.text import capfirst

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_log import sign_log
from mcp_django.exposure.admin_requests import (
    AdminRequest,
    Recorder,
    Said,
    admin_request,
    own_copy,
    path_of,
    plain_text,
    without_reports,
)
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.refusals import refusals_in_words
from mcp_django.levels import Level

#: What the button of the page sends.
CONFIRMED = ("post", "yes")


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What would go, as far as this caller may know of it: numbers by the label of a model."""

    counts: Mapping[str, int]
    #: Records that refer to these and keep them from going.
    protected: Mapping[str, int]
    #: Models with records that would go, and which this caller may not delete.
    lacking: Sequence[str]
    #: Whether any of the three has models that this caller may not see.
    has_others: bool
    is_possible: bool
    #: Of all of it, the hidden parts too.
    digest: str

    def as_json(self) -> dict[str, Any]:
        found = {
            "would_delete": dict(self.counts),
            "and_records_of_other_kinds": self.has_others,
            "protected_by": dict(self.protected),
            "permission_lacking_for": list(self.lacking),
        }
        return {name: value for name, value in found.items() if value}


class Deletion:
    """Some records of one model, which this caller may see and may delete as far as the model
    goes. One goes through the page of that record, several as `delete_selected` does it.
    """

    def __init__(
        self,
        context: CallContext,
        rights: Rights,
        exposure: ModelExposure,
        model_admin: Any,
        objects: Sequence[Any],
    ) -> None:
        self.context = context
        self.rights = rights
        self.exposure = exposure
        self.admin = model_admin
        self.objects = objects
        self.keys = [one.pk for one in objects]

    def preview(self) -> Preview:
        with refusals_in_words():
            shown = self._page() if len(self.objects) == 1 else self._joint()
        listed, counts, lacking, protected = shown
        told = [list(flat(listed)), sorted(counts.items()), lacking, protected]
        digest = json.dumps([self.exposure.label, sorted(map(str, self.keys)), told])
        known_counts = {
            self.kinds[name]: count for name, count in counts.items() if name in self.kinds
        }
        holders = [text.partition(":")[0] for text in protected]
        return Preview(
            counts=known_counts,
            protected=tally(self.kinds[name] for name in holders if name in self.kinds),
            lacking=sorted({self.kinds[name] for name in lacking if name in self.kinds}),
            has_others=not self.kinds.keys() >= {*counts, *holders, *lacking},
            is_possible=not lacking and not protected,
            # With the key of the site in it: nobody finds out what is hidden by trying.
            digest=salted_hmac("mcp_django.deletion", digest, algorithm="sha256").hexdigest(),
        )

    def execute(self) -> Sequence[Said]:
        """Raises ToolError when nothing was deleted. Call it in a transaction."""
        with refusals_in_words():
            if len(self.objects) > 1 and self._offers_joint():
                return self._delete_together()
            return [said for key in self.keys for said in self._delete(key)]

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The names that the admin has for the models that this caller may count."""
        found: dict[str, str] = {}
        for one in self.rights.exposures():
            if self.rights.level(one.model) >= Level.AGGREGATES:
                opts = one.model._meta
                names = (opts.verbose_name, opts.verbose_name_plural, capfirst(opts.verbose_name))
                found |= {str(name): one.label for name in names}
        return found

    def _request(
        self, page: str, key: Any = None, *data: tuple[str, str]
    ) -> tuple[AdminRequest, Recorder]:
        path = path_of(self.admin, page, key)
        return admin_request(self.context, self.rights, self.admin, path=path, data=data or None)

    def _page(self) -> tuple[Any, dict[str, int], list[str], list[str]]:
        (key,) = self.keys
        request, _ = self._request("delete", key)
        response = own_copy(self.admin).delete_view(request, quote(str(key)))
        shown = getattr(response, "context_data", None) or {}
        if "deleted_objects" not in shown:
            raise ToolError("The admin shows no page for deleting this.")
        return (
            shown["deleted_objects"],
            texts(shown["model_count"]),
            sorted(map(str, shown["perms_lacking"])),
            [plain_text(one) for one in shown["protected"]],
        )

    def _joint(self) -> tuple[Any, dict[str, int], list[str], list[str]]:
        request, _ = self._request("changelist")
        one_call = own_copy(self.admin)
        for one in self.objects:
            if not one_call.has_delete_permission(request, one):
                raise ToolError(f"You may not delete the record with the key {one.pk}.")
        listed, counts, lacking, protected = one_call.get_deleted_objects(
            self._queryset(one_call, request), request
        )
        return (
            listed,
            texts(counts.items()),
            sorted(map(str, lacking)),
            [plain_text(one) for one in protected],
        )

    def _queryset(self, one_call: Any, request: HttpRequest) -> Any:
        rows = one_call.get_queryset(request).filter(pk__in=self.keys)
        if len(rows) != len(self.keys):
            raise ToolError("The admin does not show all of these records. Name fewer.")
        return rows

    def _offers_joint(self) -> bool:
        """Whether the admin has its own action, which a site may take away or replace."""
        request, _ = self._request("changelist")
        found = own_copy(self.admin).get_actions(request).get(delete_selected.__name__)
        function = found[0] if isinstance(found, tuple) else getattr(found, "func", None)
        return function is delete_selected

    def _delete_together(self) -> Sequence[Said]:
        one_call = own_copy(self.admin)
        sign_log(one_call, self.context)
        request, recorder = self._request("changelist", None, CONFIRMED)
        rows = self._queryset(one_call, request)
        one_call.log_deletions(request, rows)
        one_call.delete_queryset(request, rows)
        return recorder.said

    def _delete(self, key: Any) -> Sequence[Said]:
        one_call = own_copy(self.admin)
        sign_log(one_call, self.context)
        seen = watch_deleting(one_call)
        request, recorder = self._request("delete", key, CONFIRMED)
        shown = plain_text(next(one for one in self.objects if one.pk == key))
        one_call.delete_view(request, quote(str(key)))
        rows = self.admin.model._base_manager.using(router.db_for_write(self.admin.model))
        if not seen and rows.filter(pk=key).exists():
            raise ToolError(
                " ".join(["Nothing was deleted.", *(one.text for one in recorder.said)])
            )
        return without_reports(recorder.said, shown)


def watch_deleting(one_call: Any) -> list[Any]:
    """What reached `delete_model`, which a site may make do something else."""
    seen: list[Any] = []
    delete_model = one_call.delete_model

    def watched(request: HttpRequest, obj: Any) -> Any:
        seen.append(obj)
        return delete_model(request, obj)

    one_call.delete_model = watched
    return seen


def texts(counts: Iterable[tuple[Any, int]]) -> dict[str, int]:
    return {str(name): count for name, count in counts}


def tally(labels: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in labels:
        found[one] = found.get(one, 0) + 1
    return found


def flat(nested: Any) -> Iterator[str]:
    for one in nested:
        if isinstance(one, (list, tuple)):
            yield from flat(one)
        else:
            yield plain_text(one)
