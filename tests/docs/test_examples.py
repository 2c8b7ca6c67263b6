"""The project of the docs is run in processes of its own: it has its own settings."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.children import finished
from tests.docs.pages import EXAMPLES, ROOT

pytestmark = [pytest.mark.live, pytest.mark.thorough]


def django(*arguments: str, settings: str = "mysite.settings") -> subprocess.CompletedProcess:
    return finished(
        *("-W", "error", "-m", "django", *arguments),
        cwd=EXAMPLES,
        DJANGO_SETTINGS_MODULE=settings,
        PYTHONPATH=f"{EXAMPLES}{os.pathsep}{ROOT}",
    )


@pytest.mark.needs("daphne", "drf")
def test_the_examples_do_what_the_pages_say():
    finished = django("test", "shop", "tests.docs.inside")

    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.needs("daphne", "drf", "jwt", "oauth")
@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (EXAMPLES / "mysite").glob("settings_*.py"))
)
def test_the_settings_that_pages_show_pass_the_checks(name):
    finished = django("check", "--fail-level", "ERROR", settings=f"mysite.{name}")

    assert finished.returncode == 0, finished.stdout + finished.stderr
