"""Computed columns: what the admin's list shows and no field holds.

They are no part of the query that finds records. The objects with the keys of these records are
read from the ModelAdmin's own queryset afterwards, and the site's code computes the values.
"""

from __future__ import annotations

import logging
import time
from copy import copy
from typing import TYPE_CHECKING, Any

import msgspec
from django.core.exceptions import ObjectDoesNotExist
from django.db import InterfaceError, OperationalError
from django.utils.safestring import SafeData

from mcp_django.conf import get_config
from mcp_django.exceptions import QueryError
from mcp_django.exposure.fields import log_once
from mcp_django.exposure.limits import TOO_SLOW, limited, raise_lost_database
from mcp_django.exposure.options import SECRET_WORDS, ModelExposure
from mcp_django.exposure.paths import RETURN, declaration_of
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths, allowed_paths
from mcp_django.exposure.query.arguments import FindRecords
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.selection import is_list_of_names
from mcp_django.exposure.query.serializers import (
    KNOWN,
    MOST_PARTS,
    MOST_PARTS_OF_WHOLE,
    Columns,
    Trimming,
    Values,
    encoder,
    plain_text,
)

if TYPE_CHECKING:
    # The admin is optional.
    from django.contrib.admin import ModelAdmin

    from mcp_django.exposure.admin_columns import ComputedColumn
    from mcp_django.exposure.admin_sites import AdminSource

logger = logging.getLogger("mcp_django")

#: Stands for a value that code of the site fails to compute.
FAILED = "<error>"

# Which columns exist for a caller.


def computed_columns(rights: Rights, exposure: ModelExposure) -> dict[str, ComputedColumn]:
    """By name, those of this caller. Code of the site decides what they reveal, so they exist
    only for callers whom the ModelAdmin shows its list, and who see every declared field. If they
    are those of the list as it is, a field may be missing that the ModelAdmin itself hides.
    """
    listed = exposure.computed
    if listed is not None and not listed:
        return {}
    model_admin = rights.model_admin(exposure.model)
    if model_admin is None:
        return {}
    # The admin is optional; here it is there.
    from mcp_django.exposure.admin_columns import columns_of
    from mcp_django.exposure.admin_sites import AdminSource

    source = AdminSource(model_admin)
    if is_narrowed(rights, exposure, source):
        return {}
    try:
        if not source.may_view(rights.request):
            return {}
        found = columns_of(model_admin, rights.request, listed)
        if listed is None:
            found |= page_columns(rights, model_admin)
    except Exception as error:
        raise_lost_database(error)
        # Code of the site: the columns are not there, and everything else is.
        logger.exception("The computed columns of %s cannot be told.", exposure.label)
        return {}
    left = exposure.get_fields(rights.request)
    return {name: one for name, one in found.items() if left is None or name in left}


def page_columns(rights: Rights, model_admin: ModelAdmin[Any]) -> dict[str, ComputedColumn]:
    """By name, attributes of the model that no column holds and that the page of a record has, if
    code of the site makes its form: packages keep translations so.
    """
    # The admin is optional; here it is there.
    from mcp_django.exposure.admin_columns import columns_of

    model, shown = model_admin.model, rights.shown(model_admin.model) or ()
    values = [name for name in sorted(shown) if not callable(getattr(model, name, callable))]
    names = [name for name in values if not SECRET_WORDS.search(name)]
    return columns_of(model_admin, rights.request, names) if names else {}


def is_narrowed(rights: Rights, exposure: ModelExposure, source: AdminSource) -> bool:
    """Whether a computed column could reveal what was taken from this caller: a field that rights
    or staff hide, or other models, where a credential is limited to some.
    """
    if exposure.aggregates_only or rights.principal.restriction.models is not None:
        return True
    if rights.exposed.withheld.get(exposure.model):
        return True
    declared, access = declaration_of(exposure).paths[RETURN], allowed_paths(rights, exposure)
    if access.masks and exposure.computed is None:  # what the list of the admin says in clear
        return True
    if len(access.columns) < len(declared) and exposure.computed is None:
        # The admin shows its list to callers from whom it hides fields, too. Packages that sort
        # or translate hide some from everybody.
        shown = source.shown(rights.request, rights.rows(exposure.model))
        declared = tuple(path for path in declared if shown is None or path.names[0] in shown)
    return len(access.columns) < len(declared)


def orderable_path(rights: Rights, exposure: ModelExposure, column: ComputedColumn) -> str:
    """The path that a column is ordered by, if this caller may order by it. Else empty."""
    path = column.order.removeprefix("-")
    is_known = path and path in paths_of_call(rights, exposure, {"order_by": [path]}).orders
    return path if is_known else ""


def ordered_by_paths(rights: Rights, access: AccessiblePaths, asked: FindRecords) -> FindRecords:
    """Return the call with paths in place of the computed columns that it orders by."""
    names: Any = asked.order_by
    # The admin is asked about its list only for names that no path has.
    if not is_list_of_names(names) or all(one.removeprefix("-") in access.orders for one in names):
        return asked
    columns, ordered = computed_columns(rights, access.exposure), []
    for name in names:
        column = columns.get(name.removeprefix("-"))
        path = "" if column is None else orderable_path(rights, access.exposure, column)
        if column is not None and path:
            is_descending = name.startswith("-") != column.order.startswith("-")
            name = f"-{path}" if is_descending else path
        ordered.append(name)
    return msgspec.structs.replace(asked, order_by=ordered)


# Their values.


class ComputedCells:
    """The values of computed columns in one call. The objects are read once for all columns."""

    def __init__(
        self,
        rights: Rights,
        access: AccessiblePaths,
        *,
        whole: bool,
        using: str | None,
        obj: Any = None,
    ) -> None:
        self.request = rights.request
        self.model_admin = rights.model_admin(access.model)
        self.label = access.exposure.label
        #: The admin takes no model whose key is composite.
        self.key = access.keys[0].attname
        self.whole = whole
        # None: columns of a relation alone are asked for.
        is_known = whole and self.model_admin is not None
        self.reads_page = is_known and bool(page_columns(rights, self.model_admin))
        self.fence = rights.fence if rights.exposed.untrusted else None
        self.using = using or rights.rows(access.model).db
        #: By key, those that were read last; None where the code of the site failed.
        self._objects: dict[Any, Any] | None = {}
        self._keys: Values = []
        self._end = time.monotonic() + get_config().statement_timeout
        # Where the exposure decides which rows there are, the admin may not have this one.
        if obj is not None and not (access.exposure.decides_itself or self.reads_page):
            self._keys = [getattr(obj, self.key)]
            self._objects = {self._keys[0]: obj}

    def of(self, column: ComputedColumn, columns: Columns) -> Values:
        """One value for each record. None where the admin has no such row for this caller."""
        keys = list(columns[self.key])
        with limited(self.using):
            if keys != self._keys:
                self._end = time.monotonic() + get_config().statement_timeout
                self._keys, self._objects = keys, self._read(keys)
            if self._objects is None:
                return [FAILED] * len(keys)
            found = [self._objects.get(key) for key in keys]
            return [None if obj is None else self._cell(column, obj) for obj in found]

    def _read(self, keys: Values) -> dict[Any, Any] | None:
        # The admin is optional; here it is there.
        from mcp_django.exposure.admin_columns import rows_of_list

        try:
            rows = rows_of_list(self.model_admin, self.request).using(self.using)
            if self.reads_page:
                page: Any = copy(self.model_admin)
                page.get_queryset = lambda request: rows
                return {key: page.get_object(self.request, str(key)) for key in keys}
            return {getattr(one, self.key): one for one in rows.filter(pk__in=keys)}
        except (OperationalError, InterfaceError):  # slow, or lost
            raise
        except Exception as error:
            log_once(self.label, "has computed columns whose rows cannot be read.", error)
            return None

    def _cell(self, column: ComputedColumn, obj: Any) -> Any:
        if time.monotonic() > self._end:
            raise QueryError(TOO_SLOW)
        try:
            value = column.value_of(obj, self.model_admin)
            if not isinstance(value, KNOWN) or isinstance(value, SafeData):
                value = None if value is None else plain_text(value)
            most = MOST_PARTS_OF_WHOLE if self.whole else MOST_PARTS
            value = Trimming(most, whole=self.whole).json(value)
            encoder.encode(value)
        except ObjectDoesNotExist:  # what the list shows as empty
            return None
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            log_once(f"{self.label}.{column.name}", "cannot always be computed.", error)
            return FAILED
        return value if self.fence is None else self.fence(value)
