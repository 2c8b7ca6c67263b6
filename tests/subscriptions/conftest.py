from __future__ import annotations

import pytest
from django.test import TestCase


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
