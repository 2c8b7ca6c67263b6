"""How pytest-xdist spreads the tests over its workers, and what each of them does only once."""

from __future__ import annotations

import gc

import pytest

#: What takes longest comes first. A worker that began one of these last would run on alone.
LONGEST = (
    "tests/leaks/test_leaks.py",
    "tests/official/",
    "tests/demo/",
    "tests/browser/test_looking.py",
    # One after the other, so that a worker starts the browser once.
    "tests/browser/",
    "tests/fuzz/test_fuzz.py",
    "tests/management/test_mcp_stdio.py",
    "tests/audit/test_writer.py",
    "tests/docs/test_tutorial.py",
    "tests/docs/test_transports_page.py",
    "tests/docs/test_examples.py",
    "tests/spec/test_requirements.py",
    "tests/subscriptions/test_processes.py",
)
#: Folders whose tests share what takes long to set up: the rows of the demo.
TOGETHER = ("tests/demo/", "tests/official/")


def rank(item: pytest.Item) -> int:
    starts = (at for at, path in enumerate(LONGEST) if item.nodeid.startswith(path))
    return next(starts, len(LONGEST))


def scope_of(nodeid: str) -> str:
    """All tests of one scope run on one worker."""
    return TOGETHER[0] if nodeid.startswith(TOGETHER) else nodeid.split("::", 1)[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is collected stays until the end, so the garbage collector need not look at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # Tests leave much behind that goes by itself, and little that is for the collector.
        gc.set_threshold(100_000, 20, 50)
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    # Not at the top: only here it is certain that pytest-xdist is there.
    from xdist.scheduler import LoadFileScheduling

    if config.getoption("dist") != "loadfile":
        return None

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return scope_of(nodeid)

    return Scheduling(config, log)
