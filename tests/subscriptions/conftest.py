from __future__ import annotations

import pytest
from django.test import TestCase

import mcp_django as mcp
from mcp_django.exposure.registry import registry


@pytest.fixture
def committed():
    """Run a block as a transaction of its own that commits, inside of the test's."""
    return lambda: TestCase.captureOnCommitCallbacks(execute=True)


@pytest.fixture
def announced(heard, committed):
    """Commit a change, and return what is heard of it."""

    def announce(change):
        with committed():
            change()
        return heard

    return announce


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
