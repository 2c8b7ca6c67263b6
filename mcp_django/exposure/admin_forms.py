"""One record through the admin's own add or change view: the form it shows, and what is posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.utils import quote
from django.db import router
from django.http import HttpRequest
from django.http.response import HttpResponseRedirectBase

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_errors import Faults
from mcp_django.exposure.admin_inlines import InlineForms
from mcp_django.exposure.admin_keep import Made, Place, Posted, watch_forms
from mcp_django.exposure.admin_log import sign_log
from mcp_django.exposure.admin_posts import Post, open_names, prepopulated
from mcp_django.exposure.admin_requests import (
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
from mcp_django.exposure.write_rights import settable

#: The button that a person presses.
SAVE = ("_save", "Save")


@dataclass(frozen=True, kw_only=True)
class Saved:
    obj: Any
    #: Fields that were sent and had another value before, and formsets with rows that changed.
    changed: Sequence[str]
    said: Sequence[Said]


class RecordForm:
    """The add form of a model, or the change form of one record, as this caller gets it.

    `values` are keyed by the names of fields, `inlines` by the prefixes of formsets. Nothing
    here asks for scopes and levels: see `write_rights`.
    """

    def __init__(
        self,
        context: CallContext,
        rights: Rights,
        exposure: ModelExposure,
        model_admin: Any,
        *,
        obj: Any = None,
    ) -> None:
        self.context = context
        self.rights = rights
        self.exposure = exposure
        self.admin = model_admin
        self.obj = obj
        self.path = path_of(self.admin, "add" if obj is None else "change", *self._key())
        self._open()

    def _key(self) -> list[Any]:
        return [] if self.obj is None else [self.obj.pk]

    def _open(self) -> None:
        """One GET, which is not rendered: rights, fields and choices in one."""
        one_call = own_copy(self.admin)
        made = watch_forms(one_call)
        request, _ = self._request()
        with refusals_in_words():
            shown = context_of(self._view(one_call, request))
        if "adminform" not in shown:
            raise ToolError("The admin shows no form for this.")
        self.form = shown["adminform"].form
        # Another ModelAdmin made it: what is not sent cannot be kept there, only repeated.
        self.is_ours = made.has(self.form)
        self.names = settable(self.rights, self.exposure, open_names(self.form))
        self.inlines = [self._inline(one, made) for one in shown.get("inline_admin_formsets", ())]

    def _inline(self, shown: Any, made: Made) -> InlineForms:
        is_kept = self.obj is not None and self.is_ours and made.has_formset(shown.formset)
        return InlineForms(self.rights, shown, is_kept=is_kept)

    def _request(self, **given: Any) -> Any:
        return admin_request(self.context, self.rights, self.admin, path=self.path, **given)

    def _view(self, one_call: Any, request: HttpRequest) -> Any:
        # Not changeform_view: django-reversion opens its revision in these two.
        if self.obj is None:
            return one_call.add_view(request)
        return one_call.change_view(request, quote(str(self.obj.pk)))

    def check(self, values: Mapping[str, Any], inlines: Mapping[str, Any]) -> None:
        """Raise ToolError for what cannot even be filled in. Nothing is posted."""
        faults = Faults(self.names, sent=frozenset(values))
        self._fill_in(Post(rights=self.rights, faults=faults), values, inlines)
        faults.raise_any()

    def save(
        self,
        values: Mapping[str, Any],
        inlines: Mapping[str, Any],
    ) -> Saved:
        """Post them. Raises ToolError, with every field that is wrong, when nothing was saved."""
        faults = Faults(self.names, sent=frozenset(values))
        post = Post(rights=self.rights, faults=faults)
        rows = self._fill_in(post, values, inlines)
        faults.raise_any()
        one_call = own_copy(self.admin)
        posted = Posted(names=frozenset(values), rows=rows)
        watch_forms(one_call, posted)
        sign_log(one_call, self.context)
        seen = watch_saving(one_call)
        request, recorder = self._request(data=[*post.pairs, SAVE], files=post.files)
        with refusals_in_words():
            response = self._view(one_call, request)
        if not seen and not self._was_saved_elsewhere(response, recorder.said, seen):
            faults.collect(context_of(response), self.rights)
            faults.raise_any()
            raise ToolError(" ".join(["Nothing was saved.", *(one.text for one in recorder.said)]))
        said = without_reports(recorder.said, plain_text(seen["obj"]))
        return Saved(obj=seen["obj"], changed=seen["changed"], said=said)

    def _was_saved_elsewhere(
        self, response: Any, said: Sequence[Said], seen: dict[str, Any]
    ) -> bool:
        """A view that hands over to another ModelAdmin says so by leading on to another page."""
        if self.is_ours or not isinstance(response, HttpResponseRedirectBase):
            return False
        if self.obj is None or any(one.level_name in ("warning", "error") for one in said):
            return False
        using = router.db_for_write(self.admin.model)
        found = self.admin.model._base_manager.using(using).filter(pk=self.obj.pk).first()
        seen.update(obj=found, changed=[])
        return found is not None

    def _fill_in(
        self, post: Post, values: Mapping[str, Any], inlines: Mapping[str, Any]
    ) -> dict[Place, frozenset[str]]:
        post.faults.refuse_unknown(values, self.names)
        given = {name: values[name] for name in self.names if name in values}
        if self.obj is None:
            request, _ = self._request()
            fields = self.admin.get_prepopulated_fields(request, None)
            given |= prepopulated(self.form, fields, given)
        repeat = self.obj is None or not self.is_ours
        post.fill_in(self.form, given, repeat=repeat)
        offered = [one.prefix for one in self.inlines if one.is_offered]
        post.faults.refuse_unknown(inlines, offered, what="an inline")
        rows: dict[Place, frozenset[str]] = {}
        for one in self.inlines:
            rows |= one.fill_in(post, inlines.get(one.prefix, []) if one.is_offered else [])
        return rows


def context_of(response: Any) -> dict[str, Any]:
    return getattr(response, "context_data", None) or {}


def watch_saving(one_call: Any) -> dict[str, Any]:
    """What was saved, once it was. Empty until then."""
    seen: dict[str, Any] = {}
    save_related = one_call.save_related

    def watched(request: HttpRequest, form: Any, formsets: Any, change: Any) -> Any:
        names = list(form.changed_data)
        rows = [one.prefix for one in formsets if one.has_changed()]
        result = save_related(request, form, formsets, change)
        seen.update(obj=form.instance, changed=[*names, *rows])
        return result

    one_call.save_related = watched
    return seen
