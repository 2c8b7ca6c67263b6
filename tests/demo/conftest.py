from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def demo(fresh_demo, tmp_path_factory):
    """For all tests that leave it as they find it."""
    demo = fresh_demo.copy_to(tmp_path_factory.mktemp("demo") / "state")
    with demo.inside() as demo.orm:
        yield demo


@pytest.fixture
def own_demo(fresh_demo, tmp_path):
    """For a test that changes what the others ask about."""
    demo = fresh_demo.copy_to(tmp_path / "state")
    with demo.inside() as demo.orm:
        yield demo
