from __future__ import annotations

import pytest

from tests.clients import CheckedClient


@pytest.fixture
def any_revision(staff, revision):
    """The client of a member of the staff, in each revision."""
    return CheckedClient(user=staff, revision=revision)
