from __future__ import annotations

import pytest

from tests.demo.state import answering


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
