"""Faults in the ground floor of exposure and in exposure/query: rights, values, orders, limits."""

from __future__ import annotations

from tests.faults.model import Fault, Room

FAULTS: tuple[Fault, ...] = (
    Fault(
        file="exposure/options.py",
        old="words = CERTAIN_WORDS if name in listed else SECRET_WORDS",
        new="words = CERTAIN_WORDS",
    ),
    Fault(
        file="exposure/permissions.py",
        old="return not groups or not groups.isdisjoint(self._groups)",
        new="return not groups or bool(self._groups)",
    ),
    Fault(
        file="exposure/decisions.py",
        old="labels = code.label_fields if row.label_fields is None else row.label_fields",
        new="labels = row.label_fields or code.label_fields",
    ),
    Fault(
        file="exposure/masks.py",
        old="max(0, len(text) - ALWAYS_HIDDEN)",
        new="max(0, len(text) - 1)",
    ),
    Fault(
        file="exposure/fields.py",
        old='if operator not in ("gte", "lt") and',
        new='if operator not in ("gte", "lt", "lte") and',
    ),
    Fault(
        file="exposure/uris.py",
        old='if path and operator in ("in", "range"):',
        new='if path and operator == "in":',
    ),
    Fault(
        file="exposure/request_attributes.py",
        old="if owners is None or (is_named and verb in VERBS):",
        new="if owners is None or is_named:",
    ),
    Fault(
        file="exposure/query/access.py",
        old="if theirs.null:  # x NOT IN",
        new="if not theirs.null:  # x NOT IN",
    ),
    Fault(
        file="exposure/query/access.py",
        old='edge = ends if operator in ("gt", "lte") else starts',
        new='edge = ends if operator == "gt" else starts',
    ),
    Fault(
        file="exposure/query/find.py",
        old="while has_more and len(found) <= skip + limit:",
        new="while has_more and len(found) < skip + limit:",
    ),
    Fault(
        file="exposure/query/pagination.py",
        old="if one.is_nullable and not nulls_come_first:",
        new="if one.is_nullable and nulls_come_first:",
    ),
    Fault(
        file="exposure/query/filters.py",
        old="if not all(alternatives):",
        new="if not any(alternatives):",
    ),
    Fault(
        file="exposure/query/aggregates.py",
        old='for at, one in enumerate(["*", *lookups])}',
        new='for at, one in enumerate(["*", *lookups[:0]])}',
    ),
    Fault(
        file="exposure/query/aggregates.py",
        old='measures = tuple(name for name in measures if name in ("sum", "avg"))',
        new='measures = tuple(name for name in measures if name in ("sum", "avg", "max"))',
    ),
    Fault(
        file="exposure/query/serializers.py",
        old="(min(known) >= -EXACT and max(known) <= EXACT)",
        new="(max(known) <= EXACT)",
    ),
    Fault(
        file="exposure/query/pagination.py",
        old='return raw if vendor == "sqlite" or hasattr',
        new="return raw if hasattr",
    ),
    Fault(
        file="exposure/query/filters.py",
        old='if is_text or (operator != "iexact" and path.field.get_lookup(operator)):',
        new="if is_text:",
    ),
    Fault(
        file="exposure/query/related_names.py",
        old="return [row for row in rows if text in row[1:]] or rows",
        new="return rows",
    ),
    Fault(
        file="exposure/query/related_counts.py",
        old=".filter(is_tied, table.of_kind)",
        new=".filter(is_tied)",
    ),
    Fault(
        file="exposure/query/included.py",
        old="if name is None or name in target.tables[FILTER]:",
        new="if name is None or name:",
    ),
    Fault(
        file="exposure/query/paths_by_rule.py",
        old="any(known[model].is_excluded(path.names[at:]) for at, model in enumerate(owners))",
        new="any(known[model].is_excluded(path.names) for at, model in enumerate(owners))",
    ),
    Fault(
        file="exposure/query/computed.py",
        old="if exposure.aggregates_only or rights.principal.restriction.models is not None:",
        new="if exposure.aggregates_only:",
    ),
    Fault(
        file="exposure/query/selection.py",
        old="if any(access.is_untrusted(one) for one in labels):",
        new="if all(access.is_untrusted(one) for one in [*labels, path]):",
    ),
    Fault(
        file="exposure/permissions.py",
        old="if self.exposed.untrusted else value",
        new="if self.exposed.untrusted and not value else value",
    ),
    Fault(
        file="exposure/query/search.py",
        old="            if where != self.where:\n                return None\n",
        new="",
    ),
    Fault(
        file="exposure/query/guard.py",
        old='is_loose = where.connector != "AND" or where.negated or query.is_sliced',
        new='is_loose = where.connector != "AND" or query.is_sliced',
    ),
    Fault(
        file="exposure/query/describe.py",
        old="labels = {name: step.hop.model._meta.label_lower for name, step in steps.items()}",
        new="labels = {name: step.hop.model._meta.label for name, step in steps.items()}",
    ),
    Fault(
        file="exposure/admin_sites.py",
        old="on_page &= {*form.base_fields, *read_only}",
        new="pass",
    ),
    Fault(
        file="exposure/admin_sites.py",
        old="if meta.fields not in (None, ALL_FIELDS):",
        new="if False:",
    ),
)
QUERY = Room(
    tests=(
        "tests/exposure/test_fields.py",
        "tests/exposure/test_options.py",
        "tests/exposure/test_uris.py",
        "tests/exposure/test_request_attributes.py",
        "tests/exposure/test_admin_sites.py",
        "tests/exposure/test_decisions.py",
        "tests/exposure/query",
        "tests/exposure/test_permissions.py",
    ),
    faults=FAULTS,
)
