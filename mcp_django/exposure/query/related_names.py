"""Related records by what they are called: the keys that a filter means by texts such as "FRA"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Model, Q
from django.utils.text import Truncator

from mcp_django.exceptions import QueryError
from mcp_django.exposure import fields
from mcp_django.exposure.fields import kind_of, quoted, target_of
from mcp_django.exposure.forms.html import folded
from mcp_django.exposure.limits import limited
from mcp_django.exposure.paths import FILTER, Path, declaration_of
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import allowed_paths, policy_of
from mcp_django.exposure.query.content_types import is_content_type_model, key_of_type
from mcp_django.exposure.query.guard import guarded
from mcp_django.levels import Level
from mcp_django.templating.fences import fenced

#: Records that a text which several are called by names.
MOST_ALIKE = 5
#: Rows that are looked at for one text, where rows are judged one by one.
MOST_CANDIDATES = 100
#: Texts in one call. Each takes a query.
MOST_TEXTS = 20
LONGEST_SHOWN_NAME = 60


class RelatedNames:
    """Finds related records for the filters of one call. Rows that the caller may not see are
    none, and nothing is looked up in a model that is not open to the caller.
    """

    def __init__(self, rights: Rights) -> None:
        self.rights = rights
        self._found: dict[tuple[type[Model], str], Any] = {}

    def value(self, path: Path, operator: str, value: Any, *, using: str) -> Any:
        """The value of a condition with keys in place of texts. None where a text cannot stand
        for a record there. Raises QueryError for a text that does not name exactly one.
        """
        model = self._model_behind(path)
        is_named = model is not None and (is_content_type_model(model) or self._columns(model))
        if not is_named or operator not in ("exact", "in"):
            return None
        keys = []
        for item in fields.items(operator, value) if operator == "in" else [value]:
            try:
                keys.append(fields.scalar(model._meta.pk_fields[0], item, using=using))
            except QueryError:
                if not isinstance(item, str) or not item.strip():
                    return None
                keys.append(self._key(model, item, using=using))
        return keys if operator == "in" else keys[0]

    def _model_behind(self, path: Path) -> Any:
        """The model whose keys the path is compared with, if the caller sees its records, or that
        of content types.
        """
        model: Any
        if path.field is None:
            model = path.hops[-1].model
        elif not path.field.is_relation or not target_of(path.field).primary_key:
            return None  # it may hold those of another column
        else:
            model = path.field.related_model
            if is_content_type_model(model):
                return model
        is_open = model in self.rights.exposed.exposures and len(model._meta.pk_fields) == 1
        return model if is_open and self.rights.level(model) >= Level.READ else None

    def _columns(self, model: type[Model]) -> tuple[str, ...]:
        """The text columns that name a record: those of its label, and those that are unique. Only
        such that the caller may filter by: what is found tells as much as a filter does.
        """
        exposure = self.rights.exposed.exposures[model]
        usable = allowed_paths(self.rights, exposure).tables[FILTER]
        labels = [path.field for path in declaration_of(exposure).labels]
        unique = [one for one in model._meta.concrete_fields if one.unique]
        return tuple(
            dict.fromkeys(
                field.attname
                for field in (*labels, *unique)
                if field.name in usable
                and kind_of(field) == "text"
                and not field.is_relation
                and not hasattr(field, "from_db_value")
            )
        )

    def _key(self, model: type[Model], given: str, *, using: str) -> Any:
        if (model, given) not in self._found:
            if len(self._found) >= MOST_TEXTS:
                raise QueryError(f"At most {MOST_TEXTS} records can be named by a text. Use keys.")
            if is_content_type_model(model):
                types = model._base_manager.using(using).all()
                self._found[model, given] = key_of_type(self.rights, types, given)
            else:
                self._found[model, given] = self._look_up(model, given)
        return self._found[model, given]

    def called(self, model: type[Model], given: str) -> list[Any]:
        """Return key and columns of the visible rows of an open model that a text names: as many
        as an answer names and one more. Raises QueryError for a text that is too long.
        """
        text = fields.bounded_text(given).strip()
        columns = self._columns(model)
        rows = self._rows(model, columns, text) if columns and text else []
        # Who writes a text as it is stored means that record.
        return [row for row in rows if text in row[1:]] or rows

    def _look_up(self, model: type[Model], given: str) -> Any:
        opts = model._meta
        chosen = self.called(model, given)
        if len(chosen) == 1:
            return chosen[0][0]
        if not chosen:
            raise QueryError(
                f"no {opts.verbose_name} is called {quoted(given)}. Call find_records with "
                f'{{"model": "{opts.label_lower}"}} to see which there are.'
            )
        (key,) = model._meta.pk_fields
        alike = sorted(chosen[:MOST_ALIKE], key=lambda row: str(row[0]))
        names = [name_of(row) for row in alike]
        if not self.rights.untrusted(model).isdisjoint(self._columns(model)):
            names = [fenced(name, self.rights.mark) for name in names]
        named = ", ".join(
            f"{name} ({key.name} {row[0]})" for name, row in zip(names, alike, strict=True)
        )
        count = f"more than {MOST_ALIKE}" if chosen[MOST_ALIKE:] else len(chosen)
        raise QueryError(
            f"{count} {opts.verbose_name_plural} are called {quoted(given)}: {named}. Use a key."
        )

    def _rows(self, model: type[Model], columns: tuple[str, ...], text: str) -> list[Any]:
        (key,) = model._meta.pk_fields
        names = [key.attname, *(name for name in columns if name != key.attname)]
        is_judged = self.rights.checks_rows_one_by_one(model)
        rows = guarded(self.rights.rows(model), policy_of(model, names))
        called = Q(*((f"{name}__iexact", text) for name in columns), _connector=Q.OR)
        most = MOST_CANDIDATES if is_judged else MOST_ALIKE + 1
        with limited(rows.db):
            found = list(rows.filter(called).values_list(*names)[:most])
            if not is_judged:
                return found
            objects = model._base_manager.using(rows.db).filter(pk__in=[row[0] for row in found])
            visible = {one.pk for one in objects if self.rights.may_view_object(model, one)}
        return [row for row in found if row[0] in visible]


def name_of(row: Sequence[Any]) -> str:
    """What to show of a key and the columns of names."""
    name = next(str(one) for one in row[1:] if one)
    return Truncator(folded(name)).chars(LONGEST_SHOWN_NAME)
