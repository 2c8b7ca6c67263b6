"""Faults in exposure/admin_bridge and exposure/forms."""

from __future__ import annotations

from tests.faults.model import Fault, Room

BRIDGE = "exposure/admin_bridge"
FORMS = "exposure/forms"
FAULTS: tuple[Fault, ...] = (
    Fault(
        file="exposure/admin_bridge/history.py",
        old="return None if is_hidden else str(user.get_username())",
        new="return str(user.get_username())",
    ),
    Fault(
        file="exposure/query/content_types.py",
        old="return model in rights.exposed.exposures and rights.level(model) >= Level.READ",
        new="return model in rights.exposed.exposures",
    ),
    Fault(
        file="exposure/admin_bridge/history.py",
        old="return bool(kept) and all(members) and all(map(self.shows_values, kept))",
        new="return bool(kept) and all(map(self.shows_values, kept))",
    ),
    Fault(
        file="exposure/admin_bridge/history.py",
        old="or any(is_secret(type(row), name) for name in names):",
        new="or all(is_secret(type(row), name) for name in names):",
    ),
    Fault(
        file="exposure/admin_bridge/writes.py",
        old="if now.get(name) != after]",
        new="if now.get(name, after) is None]",
    ),
    Fault(
        file=f"{BRIDGE}/rights.py",
        old="if not is_writer(rights, verb) or rights.level(model) < Level.WRITE:",
        new="if not is_writer(rights, verb):",
    ),
    Fault(
        file=f"{BRIDGE}/rights.py",
        old="hidden |= rights.masks(exposure.model).keys()",
        new="hidden |= set()",
    ),
    Fault(
        file=f"{BRIDGE}/rights.py",
        old="if isinstance(changed, datetime) and as_aware(changed) > as_aware(limit):",
        new="if False:",
    ),
    Fault(
        file=f"{BRIDGE}/writes.py",
        old="check_version(version_in_form(rights, row), given.version)",
        new="check_version(given.version, given.version)",
    ),
    Fault(
        file=f"{BRIDGE}/relations.py",
        old="return added, left, hidden",
        new="return added, left, []",
    ),
    Fault(
        file=f"{BRIDGE}/posts.py",
        old="form.fields[name].disabled = True",
        new="pass",
    ),
    Fault(
        file=f"{BRIDGE}/history.py",
        old="using=using, is_answer=False",
        new="using=using",
    ),
    Fault(
        file=f"{BRIDGE}/requests.py",
        old='raise site_failure(what, "Nothing was changed.") from error',
        new="raise",
    ),
    Fault(
        file=f"{BRIDGE}/posts.py",
        old="form.is_valid = lambda: False",
        new="pass",
    ),
    Fault(
        file=f"{FORMS}/values.py",
        old="if isinstance(meant, EXACT) and not is_same(meant, got):\n        raise",
        new="if False:\n        raise",
    ),
    Fault(
        file=f"{BRIDGE}/relations.py",
        old='return choices.filter(Q(("pk__in", visible))).order_by("pk")',
        new='return choices.order_by("pk")',
    ),
    Fault(
        file=f"{BRIDGE}/history.py",
        old="if not (after.record and shows_relation(rights, relation)):",
        new="if not after.record:",
    ),
    Fault(
        file=f"{BRIDGE}/forms.py",
        old="left = visible_objects(rights, exposure, rows, using=rows[0]._state.db)",
        new="left = rows",
    ),
    Fault(
        file=f"{BRIDGE}/posts.py",
        old="form.empty_permitted = False",
        new="form.empty_permitted = True",
    ),
    Fault(
        file=f"{BRIDGE}/deletes.py",
        old="is_possible=not lacking and not protected,",
        new="is_possible=not protected,",
    ),
    Fault(
        file=f"{BRIDGE}/dry_runs.py",
        old="raise ToolError(NOT_TAKEN_BACK) from None",
        new="pass",
    ),
    Fault(
        file=f"{BRIDGE}/history.py",
        old="return bool(names) and names <= self.fields",
        new="return bool(names)",
    ),
    Fault(
        file=f"{BRIDGE}/requests.py",
        old="if not model_admin.admin_site.has_permission(request):",
        new="if model_admin is None:",
    ),
    Fault(
        file=f"{BRIDGE}/actions.py",
        old="if not set(chosen) <= set(self.keys):",
        new="if not chosen:",
    ),
    Fault(
        file=f"{BRIDGE}/pages.py",
        old="unknown = [name for name in answer if name not in self.asks]",
        new="unknown: list[str] = []",
    ),
    Fault(
        file=f"{BRIDGE}/compat.py",
        old="if name in shown and is_permitted(model_admin, request, action):",
        new="if name in shown:",
    ),
    Fault(
        file=f"{FORMS}/values.py",
        old="if not found.is_finite() or abs(found.adjusted()) > MOST_DIGITS:",
        new="if abs(found.adjusted()) > MOST_DIGITS:",
    ),
    Fault(
        file=f"{FORMS}/schemas.py",
        old="found[keyword] = narrower(number, found.get(keyword, number))",
        new="found[keyword] = number",
    ),
    Fault(
        file=f"{FORMS}/values.py",
        old="return Upload.usable(user).filter(reference=reference).first()",
        new="return Upload.objects.filter(reference=reference).first()",
    ),
    Fault(
        file=f"{FORMS}/html.py",
        old="first = [one for one in self.options if not one.is_disabled][:1]",
        new="first = self.options[:1]",
    ),
)
RECORDS = Room(
    tests=(
        "tests/exposure/admin_bridge",
        "tests/exposure/forms",
        "tests/hostile/test_actions.py",
        "tests/writes",
    ),
    faults=FAULTS,
)
