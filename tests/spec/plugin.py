"""A pytest plugin: which requirements the tests show, which went red, and who goes first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("requirements")
    group.addoption("--first", help="run the tests of this requirement before all others")
    group.addoption("--story", help="write the requirements of each test and what failed here")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.story:
        config.pluginmanager.register(Story(Path(config.option.story)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.first:
        items.sort(key=lambda item: config.option.first not in shown_by(item))


def shown_by(item: pytest.Item) -> list[str]:
    return [name for mark in item.iter_markers("requirement") for name in mark.args]


class Story:
    """Requirements by the name of each collected test, and the names of those that failed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shown: dict[str, list[str]] = {}
        self.failed: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.shown = {item.nodeid: shown_by(item) for item in session.items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps({"shown": self.shown, "failed": self.failed}))
