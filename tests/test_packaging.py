"""The wheel holds what an installed site needs, and nothing of the tests or the demo."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # A build leaves its own folders behind, so it gets a copy of what git would clone.
    files = subprocess.run(
        ["git", "ls-files", "-z", "mcp_django", "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, files):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--wheel-dir", str(folder), str(source)],
        check=True, capture_output=True,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


@pytest.mark.needs("git")
def test_templates_migrations_commands_and_types_are_in_the_wheel(wheel):
    names = set(wheel.namelist())

    shipped = {
        str(path.relative_to(ROOT))
        for pattern in ("*.py", "*.html", "py.typed")
        for path in (ROOT / "mcp_django").rglob(pattern)
    }
    assert shipped <= names
    assert "mcp_django/migrations/0001_initial.py" in names


@pytest.mark.needs("git")
def test_nothing_else_is_in_the_wheel(wheel):
    folders = {name.split("/")[0] for name in wheel.namelist()}

    assert folders == {"mcp_django", "django_mcp_orm-0.1.0.dist-info"}


@pytest.mark.needs("git")
def test_every_dependency_has_an_upper_bound(wheel):
    text = wheel.read("django_mcp_orm-0.1.0.dist-info/METADATA").decode()
    required = Parser().parsestr(text).get_all("Requires-Dist") or []

    third_party = [one for one in required if not one.startswith("django-mcp-orm")]
    assert third_party
    for one in third_party:
        assert "<" in one or "==" in one.split(";")[0], one


def test_the_lowest_releases_that_are_tested_are_the_lower_bounds():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = config["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    for name in ("daphne", "oauth", "drf", "redis"):
        wanted += extras[name]

    bounds = sorted(re.sub(r">=([\d.]+),.*", r"==\1", one) for one in wanted)

    pinned = sorted(config["tool"]["tox"]["env"]["lowest"]["deps"])
    assert [rounded(one) for one in pinned] == [rounded(one) for one in bounds]


def rounded(pin):
    """A release without the zeros behind it: 4.2 and 4.2.0 are the same."""
    return re.sub(r"(\.0)+$", "", pin)
