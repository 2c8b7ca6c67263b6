from __future__ import annotations

from contextlib import contextmanager

import pytest


@contextmanager
def answering(demo):
    """The demo, with a process that answers what tests ask."""
    with (demo.state / "errors.log").open("w") as errors, demo.start(errors) as demo.process:
        yield demo
        demo.process.stdin.close()


@pytest.fixture(scope="session")
def demo(fresh_demo, tmp_path_factory):
    """For all tests that leave it as they find it."""
    with answering(fresh_demo.copy_to(tmp_path_factory.mktemp("demo") / "state")) as demo:
        yield demo


@pytest.fixture
def own_demo(fresh_demo, tmp_path):
    """For a test that changes what the others ask about."""
    with answering(fresh_demo.copy_to(tmp_path / "state")) as demo:
        yield demo
