"""Whether a user may act at all: the site's own rule, asked anew for each credential."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_backends


def is_active(user: Any) -> bool:
    """An active user whom at least one backend would let in, where backends have an opinion.

    `user_can_authenticate` is where sites refuse people who are banned or unconfirmed. A backend
    that lets inactive users log in does not open this door.
    """
    if not getattr(user, "is_active", False):
        return False
    rules = [
        backend.user_can_authenticate
        for backend in get_backends()
        if hasattr(backend, "user_can_authenticate")
    ]
    return not rules or any(rule(user) for rule in rules)
