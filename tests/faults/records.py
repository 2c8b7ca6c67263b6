"""Faults in exposure/admin_bridge and exposure/forms."""

from __future__ import annotations

from tests.faults.model import Room

RECORDS = Room(
    tests=(
        "tests/exposure/admin_bridge",
        "tests/exposure/forms",
        "tests/hostile/test_actions.py",
        "tests/writes",
    ),
    lines={
        "exposure/admin_bridge/history.py": [
            (
                "return None if is_hidden else str(user.get_username())",
                "return str(user.get_username())",
            ),
            (
                "return bool(kept) and all(members) and all(map(self.shows_values, kept))",
                "return bool(kept) and all(map(self.shows_values, kept))",
            ),
            (
                "or any(is_secret(type(row), name) for name in names):",
                "or all(is_secret(type(row), name) for name in names):",
            ),
            ("key, using=using, all_computed", "key, using=using, longest=40, all_computed"),
            (
                "if not (after.record and shows_relation(rights, relation)):",
                "if not after.record:",
            ),
            ("return bool(names) and names <= self.fields", "return bool(names)"),
        ],
        "exposure/query/content_types.py": [
            (
                "return model in rights.exposed.exposures and rights.level(model) >= Level.READ",
                "return model in rights.exposed.exposures",
            )
        ],
        "exposure/admin_bridge/writes.py": [
            ("if now.get(name) != after]", "if now.get(name, after) is None]"),
            (
                "check_version(version_in_form(rights, row), given.version)",
                "check_version(given.version, given.version)",
            ),
        ],
        "exposure/admin_bridge/rights.py": [
            (
                "if not is_writer(rights, verb) or rights.level(model) < Level.WRITE:",
                "if not is_writer(rights, verb):",
            ),
            ("hidden |= rights.masks(exposure.model).keys()", "hidden |= set()"),
            (
                "if isinstance(changed, datetime) and as_aware(changed) > as_aware(limit):",
                "if False:",
            ),
        ],
        "exposure/admin_bridge/relations.py": [
            ("return added, left, hidden", "return added, left, []"),
            (
                'return choices.filter(Q(("pk__in", visible))).order_by("pk")',
                'return choices.order_by("pk")',
            ),
        ],
        "exposure/admin_bridge/posts.py": [
            ("form.fields[name].disabled = True", "pass"),
            ("form.is_valid = lambda: False", "pass"),
            ("form.empty_permitted = False", "form.empty_permitted = True"),
        ],
        "exposure/admin_bridge/requests.py": [
            ('raise site_failure(what, "Nothing was changed.") from error', "raise"),
            ("if not model_admin.admin_site.has_permission(request):", "if model_admin is None:"),
        ],
        "exposure/forms/values.py": [
            (
                "if isinstance(meant, EXACT) and not is_same(meant, got):\n        raise",
                "if False:\n        raise",
            ),
            (
                "if not found.is_finite() or abs(found.adjusted()) > MOST_DIGITS:",
                "if abs(found.adjusted()) > MOST_DIGITS:",
            ),
            (
                "return Upload.usable(user).filter(reference=reference).first()",
                "return Upload.objects.filter(reference=reference).first()",
            ),
        ],
        "exposure/admin_bridge/forms.py": [
            (
                "left = visible_objects(rights, exposure, rows, using=rows[0]._state.db)",
                "left = rows",
            )
        ],
        "exposure/admin_bridge/deletes.py": [
            ("is_possible=not lacking and not protected,", "is_possible=not protected,")
        ],
        "exposure/admin_bridge/dry_runs.py": [
            ("raise ToolError(NOT_TAKEN_BACK) from None", "pass")
        ],
        "exposure/admin_bridge/actions.py": [
            ("if not set(chosen) <= set(self.keys):", "if not chosen:")
        ],
        "exposure/admin_bridge/pages.py": [
            (
                "unknown = [name for name in answer if name not in self.asks]",
                "unknown: list[str] = []",
            )
        ],
        "exposure/admin_bridge/compat.py": [
            (
                "if name in shown and is_permitted(model_admin, request, action):",
                "if name in shown:",
            )
        ],
        "exposure/forms/schemas.py": [
            (
                "found[keyword] = narrower(number, found.get(keyword, number))",
                "found[keyword] = number",
            )
        ],
        "exposure/forms/html.py": [
            (
                "first = [one for one in self.options if not one.is_disabled][:1]",
                "first = self.options[:1]",
            )
        ],
    },
)
