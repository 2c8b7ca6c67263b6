"""The wheel holds what an installed site needs and no more, the sdist all that git keeps."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import mcp_django

pytestmark = pytest.mark.thorough


ROOT = Path(__file__).parent.parent
NAME = f"django_mcp_orm-{mcp_django.__version__}"
#: What builds, tests and editors leave in a checkout, and people forget there.
LEFTOVERS = (
    ".env", ".tox/py311/lib/other.py", "build/lib/mcp_django/deleted.py",
    "django_mcp_orm.egg-info/SOURCES.txt", "dist/django_mcp_orm-0.0.1.tar.gz",
    "docs/_build/index.html", "mcp_django/__pycache__/deleted.cpython-311.pyc", "notes.txt",
    "tests/site.sqlite3",
)  # fmt: skip


def committed_files():
    """The files that a clone of the repository has, by their paths."""
    if not (ROOT / ".git").exists():
        pytest.skip("This is no clone of the repository.")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    return {name for name in listed if name and (ROOT / name).exists()}


def clone(folder):
    """A copy of what git keeps. The editable install of the tests stays out of the build."""
    for name in committed_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


def build(source, *targets, into):
    names = [argument for target in targets for argument in ("--target", target)]
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(into), *names]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of an sdist and a wheel, from a checkout in which somebody has worked."""
    folder = tmp_path_factory.mktemp("built")
    source = clone(folder / "source")
    for name in LEFTOVERS:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("left over")
    build(source, "sdist", "wheel", into=folder)
    return folder


@pytest.fixture
def wheel(built):
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as archive:
        yield archive


@pytest.fixture
def metadata(wheel):
    return Parser().parsestr(wheel.read(f"{NAME}.dist-info/METADATA").decode())


@pytest.mark.needs("git")
def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = set(wheel.namelist())

    package = {name for name in names if name.startswith("mcp_django/")}
    assert package == {name for name in committed_files() if name.startswith("mcp_django/")}
    assert {name.split("/")[0] for name in names - package} == {f"{NAME}.dist-info"}
    assert "mcp_django/py.typed" in names
    assert "mcp_django/migrations/0001_initial.py" in names
    assert any(name.startswith("mcp_django/static/") for name in names)
    assert any(name.startswith("mcp_django/templates/") for name in names)


@pytest.mark.needs("git")
def test_the_sdist_holds_what_git_keeps_and_nothing_else(built):
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        names = {member.name.removeprefix(f"{NAME}/") for member in archive if member.isfile()}

    assert names == committed_files() | {"PKG-INFO"}


@pytest.mark.needs("git")
def test_the_wheel_of_the_sdist_is_the_wheel_of_the_checkout(built, tmp_path):
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        # The Python of Debian 12 is 3.11.2, whose extractall() takes no filter.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)

    build(tmp_path / NAME, "wheel", into=tmp_path)

    name = f"{NAME}-py3-none-any.whl"
    assert (tmp_path / name).read_bytes() == (built / name).read_bytes()


def is_bounded(requirement):
    return "<" in requirement or "==" in requirement.split(";")[0]


def test_every_dependency_has_an_upper_bound():
    project = configuration()["project"]
    groups = [*project["optional-dependencies"].values()]
    groups += configuration()["dependency-groups"].values()
    required = [*project["dependencies"], *(one for group in groups for one in group)]

    third_party = [
        one for one in required if isinstance(one, str) and not one.startswith("django-mcp-orm")
    ]
    assert third_party
    assert [one for one in third_party if not is_bounded(one)] == []


def configuration():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.needs("git")
def test_the_metadata_says_what_by_whom_where_and_with_which_extras(metadata):
    extras = {"all", "daphne", "drf", "jwt", "oauth", "redis", "xlsx"}
    assert set(metadata.get_all("Provides-Extra")) == extras
    assert metadata["Version"] == mcp_django.__version__
    assert metadata["Author"]
    assert metadata.get_all("Project-URL")
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Requires-Python"] == ">=3.11"


def test_the_lowest_releases_that_are_tested_are_the_lower_bounds():
    config = configuration()
    project = config["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    for name in ("daphne", "oauth", "drf", "redis", "jwt"):
        wanted += extras[name]

    bounds = sorted(re.sub(r">=([\d.]+),.*", r"==\1", one) for one in wanted)

    pinned = sorted(config["tool"]["tox"]["env"]["lowest"]["deps"])
    assert [rounded(one) for one in pinned] == [rounded(one) for one in bounds]


def rounded(pin):
    """A release without the zeros behind it: 4.2 and 4.2.0 are the same."""
    return re.sub(r"(\.0)+$", "", pin)
