"""Changes as tests publish and expect them, and who may hear of them."""

from __future__ import annotations

from mcp_django.principal import DEFAULT_SERVER
from mcp_django.subscriptions.admission import admit_all
from mcp_django.subscriptions.outbox import outbox
from mcp_django.subscriptions.topics import LISTS, Change
from tests.waiting import PATIENCE


def list_changed(name, *, server=DEFAULT_SERVER, users=None):
    return Change(topic=name, server=server, users=users)


def admit(rights, uri, *, existence=None):
    return admit_all(rights, [uri], existence=existence)[uri]


class Heard:
    """What a sink of the outbox of this process is handed."""

    def __init__(self):
        self.batches = []

    def __call__(self, batch):
        self.batches.append(batch)

    @property
    def everything(self):
        """What came since this was last asked."""
        assert outbox.flush(PATIENCE)
        batches, self.batches = self.batches, []
        return {change for batch in batches for change in batch}

    @property
    def changes(self):
        """The same without lists, which a test changes when it registers something."""
        return {change for change in self.everything if change.topic not in LISTS}

    @property
    def lists(self):
        return {change for change in self.everything if change.topic in LISTS}

    @property
    def topics(self):
        return {change.topic for change in self.changes}

    @property
    def seen(self):
        """The topics of which something that somebody may read is said to have changed."""
        return {change.topic for change in self.changes if not change.is_hidden}
