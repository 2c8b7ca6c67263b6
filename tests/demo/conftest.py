from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def demo(fresh_demo, tmp_path_factory):
    demo = fresh_demo.copy_to(tmp_path_factory.mktemp("demo") / "state")
    with (demo.state / "errors.log").open("w") as errors, demo.start(errors) as demo.process:
        yield demo
        demo.process.stdin.close()
