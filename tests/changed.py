"""Changes as tests publish and expect them, and who may hear of them."""

from __future__ import annotations

from mcp_django.principal import DEFAULT_SERVER
from mcp_django.subscriptions.admission import admit_all
from mcp_django.subscriptions.topics import Change


def list_changed(name, *, server=DEFAULT_SERVER, users=None):
    return Change(topic=name, server=server, users=users)


def admit(rights, uri, *, existence=None):
    return admit_all(rights, [uri], existence=existence)[uri]
