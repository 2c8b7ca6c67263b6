"""What staff switch off ends at once: streams, and the sessions of the legacy era."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save

from mcp_django.models import ServerSettings, UserRestriction
from mcp_django.stores.chosen import get_store
from mcp_django.subscriptions.commits import run_after_commit
from mcp_django.subscriptions.events import CLOSE, SESSION, Change, control_topic
from mcp_django.subscriptions.harmless import harmless
from mcp_django.subscriptions.outbox import publish


@harmless
def server_saved(*, instance: ServerSettings, using: str, **kwargs: Any) -> None:
    if instance.closed:

        def close() -> None:
            close_all(instance.server)

        run_after_commit(close, using=using)


@harmless
def restriction_saved(*, instance: UserRestriction, using: str, **kwargs: Any) -> None:
    if instance.blocked:
        # As the key of a user says itself: a form or a shell may have given it as some text.
        key: Any = UserRestriction._meta.get_field("user").target_field
        user = str(key.to_python(instance.user_id))

        def close() -> None:
            close_all_of(user, server=instance.server)

        run_after_commit(close, using=using)


def close_all(server: str) -> None:
    """End what is open on a server, in whatever process."""
    publish({Change(topic=control_topic(CLOSE, "server", server))})
    end_sessions(server)


def close_all_of(user: str, *, server: str) -> None:
    """The same for one user, by the key as text."""
    publish({Change(topic=control_topic(CLOSE, "user", server, user))})
    end_sessions(server, user=user)


def end_sessions(server: str, *, user: str | None = None) -> None:
    """May take a while, and its store may be out of reach: calls are refused in any case."""
    store = get_store()
    for one in store.sessions():
        if one.server == server and user in (None, one.user):
            store.end_session(one.key)
            publish({Change(topic=control_topic(SESSION, one.key))})


def connect() -> None:
    """Watch the switches. No query; may be called again."""
    saves: Any = ((server_saved, ServerSettings), (restriction_saved, UserRestriction))
    for receiver, sender in saves:
        uid = f"mcp_django.subscriptions.{receiver.__name__}"
        post_save.connect(receiver, sender=sender, weak=False, dispatch_uid=uid)
