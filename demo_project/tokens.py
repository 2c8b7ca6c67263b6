"""A personal token for each demo user, kept so that a restart breaks no client's configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User

from demo_project.flights.seeding.users import DemoUser
from demo_project.state import read_json, write_json
from mcp_django.models import PersonalToken

TOKENS = "tokens.json"


def personal_tokens(demo_users: Iterable[DemoUser]) -> dict[str, str]:
    """Secrets by user name: kept ones, and new ones where a token was revoked or expired."""
    kept = read_json(TOKENS)
    entries: dict[str, dict[str, Any]] = {}
    for demo_user in demo_users:
        name = demo_user.username
        entries[name] = usable(kept.get(name), name) or new_entry(demo_user)
    if entries != kept:
        write_json(TOKENS, entries)
    return {name: entry["secret"] for name, entry in entries.items()}


def usable(entry: Any, username: str) -> dict[str, Any] | None:
    """The entry, if its token still opens the door."""
    if not isinstance(entry, dict) or not {"id", "secret"} <= entry.keys():
        return None
    token = PersonalToken.objects.filter(pk=entry["id"], user__username=username).first()
    return entry if token is not None and token.state() == "active" else None


def new_entry(demo_user: DemoUser) -> dict[str, Any]:
    user = User.objects.get(username=demo_user.username)
    token, secret = PersonalToken.create(user=user, name="Demo", scopes=demo_user.scopes)
    return {"id": token.pk, "secret": secret}
