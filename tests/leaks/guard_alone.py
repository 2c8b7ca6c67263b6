"""What the second stage lets through when the first has let everything through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.core.exceptions import FieldError
from django.db.models import Count, Q, Sum

from mcp_django.exceptions import Leak, NotFound
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.guard import guarded
from tests.leaks.paths import Route, routes
from tests.leaks.site import HIDDEN

#: Relations that are crossed here; one more makes five times as many queries.
RELATIONS = 1

USES: dict[str, Callable[[Any, str], Any]] = {
    "filter": lambda rows, path: rows.filter(Q((f"{path}__isnull", True))),
    "exclude": lambda rows, path: rows.exclude(Q((f"{path}__isnull", True))),
    "order": lambda rows, path: rows.order_by(path).values("pk"),
    "return": lambda rows, path: rows.values_list(path),
    "group": lambda rows, path: rows.values(path).annotate(n=Count("*")),
    "metric": lambda rows, path: rows.values("pk").annotate(n=Sum(path)),
}


def hidden_routes(root: Any) -> Iterator[Route]:
    for route in routes(root, relations=RELATIONS):
        field = route.field
        if getattr(field, "concrete", False) and field.name in HIDDEN.get(field.model, ()):
            yield route


def ask_past_the_first_stage(rights: Rights, roots: Any) -> tuple[int, list[str]]:
    """How many queries were tried, and those that the guard would have run."""
    tried, passed = 0, []
    for root in roots:
        try:
            reach = allowed_paths(rights, rights.exposed.exposures[root])
        except (KeyError, NotFound):
            continue
        for route in hidden_routes(root):
            for use, make in USES.items():
                policy = reach.group_policy if use in ("group", "metric") else reach.policy
                tried += 1
                try:
                    query = make(guarded(rights.rows(root), policy), route.text).query
                    query.get_compiler("default").as_sql()
                except (Leak, FieldError):
                    continue
                passed.append(f"{use} {root.__name__} {route.text}")
    return tried, passed
