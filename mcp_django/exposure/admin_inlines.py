"""Rows in a form of the admin: all that are stored are posted, and those change that are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_django.exposure.admin_errors import Faults
from mcp_django.exposure.admin_keep import Place, own_fields
from mcp_django.exposure.admin_parsing import shown_value
from mcp_django.exposure.admin_posts import Post, open_names, prepopulated
from mcp_django.exposure.admin_values import as_shown
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.write_rights import settable
from mcp_django.levels import Level

#: Rows that one call names.
MOST_ROWS = 200


@dataclass(kw_only=True, eq=False)
class Row:
    """What a caller wants of one row."""

    values: dict[str, Any]
    #: As the caller says it, so it may be anything.
    is_deleted: Any = False


class InlineForms:
    """One formset as the admin shows it to this caller. Models that the caller cannot write as
    such have no rows here either: what is hidden is hidden wherever it is shown.
    """

    def __init__(self, rights: Rights, shown: Any, *, is_kept: bool) -> None:
        self.shown = shown
        self.formset = shown.formset
        self.prefix: str = self.formset.prefix
        self.is_kept = is_kept
        self.own = own_fields(self.formset)
        self.names: list[str] = []
        model = self.formset.model
        self.is_offered = rights.level(model) >= Level.WRITE
        if self.is_offered:
            exposure = rights.exposure(model._meta.label_lower)
            open_ones = [one for one in open_names(self.formset.empty_form) if one not in self.own]
            self.names = settable(rights, exposure, open_ones)

    def fill_in(
        self, post: Post, wanted: Sequence[Mapping[str, Any]]
    ) -> dict[Place, frozenset[str]]:
        """Put all rows into a POST. Returns which fields were sent of which row."""
        post.faults.row_names[self.prefix] = self.names
        stored = self.formset.initial_forms
        changes = self._changes(post.faults, wanted, stored)
        count = max([len(stored), *(at + 1 for at in changes)])
        for at in range(count):
            form = stored[at] if at < len(stored) else self._new_form(at)
            row = changes.get(at, Row(values={}))
            self._fill_in_row(post, form, row, is_new=at >= len(stored))
        totals = {"TOTAL": count, "INITIAL": len(stored), "MIN_NUM": 0, "MAX_NUM": 1000}
        post.pairs += [
            (f"{self.prefix}-{name}_FORMS", str(total)) for name, total in totals.items()
        ]
        return {(self.prefix, at): frozenset(row.values) for at, row in changes.items()}

    def _fill_in_row(self, post: Post, form: Any, row: Row, *, is_new: bool) -> None:
        values = row.values
        post.faults.refuse_unknown(values, self.names, path=form.prefix)
        values = {name: one for name, one in values.items() if name in self.names}
        if is_new:
            values |= prepopulated(form, self.shown.prepopulated_fields, values)
        repeat = is_new or not self.is_kept
        post.fill_in(form, values, repeat=repeat, skip=self.own, place=form.prefix)
        for name in self.own & form.fields.keys() - {"DELETE"}:
            post.pairs += as_shown(form[name])
        if row.is_deleted:
            post.pairs.append((form.add_prefix("DELETE"), "on"))

    def _new_form(self, at: int) -> Any:
        form = self.formset.empty_form
        form.prefix = self.formset.add_prefix(at)
        return form

    def _changes(
        self, faults: Faults, wanted: Sequence[Mapping[str, Any]], stored: Any
    ) -> dict[int, Row]:
        """What is wanted, by the place of the row; new rows come after those that are stored."""
        if len(wanted) > MOST_ROWS:
            faults.add(self.prefix, f"At most {MOST_ROWS} rows can be named in one call.")
            return {}
        places = {str(form.instance.pk): at for at, form in enumerate(stored)}
        found: dict[int, Row] = {}
        new = len(stored)
        for given in wanted:
            values = {name: one for name, one in given.items() if name not in ("pk", "delete")}
            row = Row(values=values, is_deleted=given.get("delete", False))
            if given.get("pk") is None:
                if self._may_add(faults, row, new):
                    found[new] = row
                    new += 1
                continue
            at = places.get(str(given["pk"]))
            if at is None or at in found:
                told = "There is no row" if at is None else "There are two changes of the row"
                faults.add(self.prefix, f"{told} with the key {shown_value(given['pk'])}.")
            elif self._may_change(faults, row):
                found[at] = row
        return found

    def _may_add(self, faults: Faults, row: Row, at: int) -> bool:
        if row.is_deleted:
            faults.add(self.prefix, "Name the key of the row to delete.")
        elif not self.shown.has_add_permission:
            faults.add(self.prefix, "You may not add rows here.")
        elif at >= (self.formset.max_num or 0):
            faults.add(self.prefix, f"There can be at most {self.formset.max_num} rows.")
        else:
            return True
        return False

    def _may_change(self, faults: Faults, row: Row) -> bool:
        if not isinstance(row.is_deleted, bool):
            faults.add(self.prefix, "delete is true or false.")
        elif row.is_deleted and not (self.formset.can_delete and self.shown.has_delete_permission):
            faults.add(self.prefix, "You may not delete rows here.")
        elif row.values and not self.shown.has_change_permission:
            faults.add(self.prefix, "The rows here are read-only for you.")
        else:
            return True
        return False
