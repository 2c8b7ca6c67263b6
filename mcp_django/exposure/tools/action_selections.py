"""Which records an action is for: named by key, or found as `find_records` finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_django.exceptions import QueryError, ToolError
from mcp_django.exposure.admin_bridge.actions import not_found
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import key_value
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import Condition, allowed_paths
from mcp_django.exposure.query.arguments import Filters
from mcp_django.exposure.query.filters import ParsedFilters, parse
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.related import find_keys
from mcp_django.signing import digest_of_json


@dataclass(frozen=True, kw_only=True)
class ActionRecords:
    """Records that exist for the caller, in the order of the model."""

    keys: Sequence[Any]

    @property
    def digest(self) -> str:
        """Of the keys in any order: other records make another one."""
        return digest_of_json(sorted(str(key) for key in self.keys))


def selected_records(
    rights: Rights, exposure: ModelExposure, pks: Sequence[Any] | None, asked: Filters
) -> ActionRecords:
    """The records that a call names, in one way or the other. Raises ToolError as both do."""
    if (pks is None) == (asked == Filters()):
        raise ToolError(
            'Name the records: by "pks", or by "filters", "exclude", "search". '
            "An empty value names none."
        )
    return filtered(rights, exposure, asked) if pks is None else named(rights, exposure, pks)


def named(rights: Rights, exposure: ModelExposure, pks: Sequence[Any]) -> ActionRecords:
    """The records with these keys. Raises NotFound that names those that do not exist for the
    caller, if there is one.
    """
    access = allowed_paths(rights, exposure)
    using = rights.rows(exposure.model).db
    keys: dict[str, Any] = {}
    unknown = []
    for given in pks:
        try:
            key = key_value(access.key_paths[0].field, given, using=using)
        except QueryError:
            unknown.append(str(given))
        else:
            keys[str(key)] = key
    wanted = ParsedFilters(
        filters=[Condition(path=access.key_paths[0], operator="in", value=list(keys.values()))]
    )
    found = find_keys(rights, access, wanted, using=using)
    known = {str(key) for key in found}
    if missing := [*unknown, *(key for key in keys if key not in known)]:
        raise not_found(missing)
    return ActionRecords(keys=found)


def filtered(rights: Rights, exposure: ModelExposure, asked: Filters) -> ActionRecords:
    """The records that filters find. Raises ToolError where they find none, or too many, or
    would find all.
    """
    # A search for blanks is one for nothing.
    if not (asked.filters or asked.exclude or (asked.search and asked.search.split())):
        raise ToolError("Empty filters would select every record. Say which you mean, or use pks.")
    access = paths_of_call(rights, exposure, asked)
    using = rights.rows(exposure.model).db
    found = find_keys(rights, access, parse(rights, access, asked, using=using), using=using)
    if not found:
        raise ToolError(
            "These filters find no record. Nothing was done. Try them with find_records first."
        )
    return ActionRecords(keys=found)
