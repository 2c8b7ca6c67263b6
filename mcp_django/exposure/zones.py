"""Whether a database can tell what the clocks of a time zone showed."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connections
from django.utils import timezone


def knows_zones(using: str) -> bool:
    """MariaDB and MySQL without time zone tables make NULL of every instant that they move.

    Where the current time zone is that of the database nothing has to be moved.
    """
    connection: Any = connections[using]
    if not settings.USE_TZ or connection.features.has_zoneinfo_database:
        return True
    return bool(timezone.get_current_timezone_name() == connection.timezone_name)
