from __future__ import annotations

import pytest
from django.test import TestCase

import mcp_django as mcp
from mcp_django.exposure.generation import generations
from mcp_django.exposure.registry import registry
from mcp_django.subscriptions.outbox import outbox
from mcp_django.subscriptions.topics import LISTS
from tests.waiting import PATIENCE


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


@pytest.fixture
def heard():
    # What an earlier test decided was rolled back without a word, and what it took off a list is
    # no news here.
    generations.forget()
    outbox.flush()
    found = Heard()
    outbox.add_sink(found)
    yield found
    outbox.flush(PATIENCE)
    outbox.remove_sink(found)


@pytest.fixture
def committed():
    """Run a block as a transaction of its own that commits, inside of the test's."""
    return lambda: TestCase.captureOnCommitCallbacks(execute=True)


@pytest.fixture
def expose():
    """Register models until the test ends."""
    added = []

    def add(model, fields, **options):
        options = {name: value.split() for name, value in options.items()}
        mcp.register(model, fields=fields.split(), **options)
        added.append(model)

    yield add
    for model in added:
        registry.unregister(model)
