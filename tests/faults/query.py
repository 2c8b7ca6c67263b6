"""Faults in the ground floor of exposure and in exposure/query: rights, values, orders, limits."""

from __future__ import annotations

from tests.faults.model import Room

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
    lines={
        "exposure/options.py": [
            ("words = CERTAIN_WORDS if name in listed else SECRET_WORDS", "words = CERTAIN_WORDS")
        ],
        "exposure/permissions.py": [
            (
                "return not groups or not groups.isdisjoint(self._groups)",
                "return not groups or bool(self._groups)",
            ),
            (
                "if self.exposed.untrusted else value",
                "if self.exposed.untrusted and not value else value",
            ),
        ],
        "exposure/decisions.py": [
            (
                "labels = code.label_fields if row.label_fields is None else row.label_fields",
                "labels = row.label_fields or code.label_fields",
            )
        ],
        "exposure/masks.py": [("max(0, len(text) - ALWAYS_HIDDEN)", "max(0, len(text) - 1)")],
        "exposure/fields.py": [
            ('if operator not in ("gte", "lt") and', 'if operator not in ("gte", "lt", "lte") and')
        ],
        "exposure/uris.py": [
            ('if path and operator in ("in", "range"):', 'if path and operator == "in":')
        ],
        "exposure/request_attributes.py": [
            (
                "if owners is None or (is_named and verb in VERBS):",
                "if owners is None or is_named:",
            )
        ],
        "exposure/query/access.py": [
            ("if theirs.null:  # x NOT IN", "if not theirs.null:  # x NOT IN"),
            (
                'edge = ends if operator in ("gt", "lte") else starts',
                'edge = ends if operator == "gt" else starts',
            ),
        ],
        "exposure/query/find.py": [
            (
                "while has_more and len(found) <= skip + limit:",
                "while has_more and len(found) < skip + limit:",
            )
        ],
        "exposure/query/pagination.py": [
            (
                "if one.is_nullable and not nulls_come_first:",
                "if one.is_nullable and nulls_come_first:",
            ),
            ('return raw if vendor == "sqlite" or hasattr', "return raw if hasattr"),
        ],
        "exposure/query/filters.py": [
            ("if not all(alternatives):", "if not any(alternatives):"),
            (
                'if is_text or (operator != "iexact" and path.field.get_lookup(operator)):',
                "if is_text:",
            ),
        ],
        "exposure/query/aggregates.py": [
            (
                'for at, one in enumerate(["*", *lookups])}',
                'for at, one in enumerate(["*", *lookups[:0]])}',
            ),
            (
                'measures = tuple(name for name in measures if name in ("sum", "avg"))',
                'measures = tuple(name for name in measures if name in ("sum", "avg", "max"))',
            ),
        ],
        "exposure/query/serializers.py": [
            ("(min(known) >= -EXACT and max(known) <= EXACT)", "(max(known) <= EXACT)")
        ],
        "exposure/query/related_names.py": [
            ("return [row for row in rows if text in row[1:]] or rows", "return rows")
        ],
        "exposure/query/related_counts.py": [
            (".filter(is_tied, table.of_kind)", ".filter(is_tied)")
        ],
        "exposure/query/included.py": [
            ("if name is None or name in target.tables[FILTER]:", "if name is None or name:")
        ],
        "exposure/query/paths_by_rule.py": [
            (
                "any(known[model].is_excluded(path.names[at:])",
                "any(known[model].is_excluded(path.names)",
            )
        ],
        "exposure/query/computed.py": [
            (
                "if exposure.aggregates_only or rights.principal.restriction.models is not None:",
                "if exposure.aggregates_only:",
            )
        ],
        "exposure/query/selection.py": [
            (
                "if any(access.is_untrusted(one) for one in labels):",
                "if all(access.is_untrusted(one) for one in [*labels, path]):",
            )
        ],
        "exposure/query/search.py": [
            ("            if where != self.where:\n                return None\n", "")
        ],
        "exposure/query/guard.py": [
            (
                'is_loose = where.connector != "AND" or where.negated or query.is_sliced',
                'is_loose = where.connector != "AND" or query.is_sliced',
            )
        ],
        "exposure/query/describe.py": [
            (
                "labels = {name: step.hop.model._meta.label_lower for",
                "labels = {name: step.hop.model._meta.label for",
            )
        ],
        "exposure/admin_sites.py": [
            ("on_page &= {*form.base_fields, *read_only}", "pass"),
            ("if meta.fields not in (None, ALL_FIELDS):", "if False:"),
        ],
    },
)
