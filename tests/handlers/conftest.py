from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.clients import CheckedClient


@pytest.fixture
def any_revision(staff, revision):
    """The client of a member of the staff, in each revision."""
    return CheckedClient(user=staff, revision=revision)


@pytest.fixture
def hear():
    """What a signal says, until the test ends."""
    with ExitStack() as stack:

        def connect(signal, receiver=bool):
            heard = []

            def keep(sender, record, context, **kwargs):
                heard.append((record, context))
                receiver()

            signal.connect(keep, weak=False)
            stack.callback(signal.disconnect, keep)
            return heard

        yield connect
