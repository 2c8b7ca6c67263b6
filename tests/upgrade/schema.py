from __future__ import annotations

from typing import Any

from django.db import connection


def schema() -> dict[str, Any]:
    """Columns and constraints of our tables, as the database tells them."""
    introspection = connection.introspection
    with connection.cursor() as cursor:
        return {
            name: {
                "columns": introspection.get_table_description(cursor, name),
                "constraints": introspection.get_constraints(cursor, name),
            }
            for name in introspection.table_names(cursor)
            if name.startswith("mcp_django")
        }
