"""The map of the package in CONTRIBUTING.md, compared with its folders and its contracts."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise

import pytest

from tests.docs.pages import ROOT, table

PAGE = ROOT / "CONTRIBUTING.md"
PACKAGE = ROOT / "mcp_django"
#: Folders without Python code.
OTHERS = {"migrations", "static", "templates"}
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]


def named(heading: str) -> list[str]:
    return [re.search(r"`([\w./]+)`", row[0])[1] for row in table(PAGE, heading)]


def layers(container: str) -> list[set[str]]:
    """The layers of a contract, top to bottom."""
    (contract,) = (one for one in CONTRACTS if one.get("containers") == [container])
    return [set(re.findall(r"\w+", layer)) for layer in contract["layers"]]


def packages(folder: str) -> set[str]:
    found = (path.parent for path in (ROOT / folder).glob("*/__init__.py"))
    return {path.name for path in found}


def modules(folder: str) -> set[str]:
    return {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__"}


def test_the_map_names_every_package_and_room_once():
    rooms = {
        f"{parent}/{room}"
        for parent in packages("mcp_django") - OTHERS - {"exposure", "management"}
        for room in packages(f"mcp_django/{parent}") - OTHERS
    }
    files, transports = (
        {f"{name}.py" for name in modules(f"mcp_django/{package}")}
        for package in ("exposure", "transports")
    )

    assert sorted(named("### Packages")) == sorted(packages("mcp_django") - OTHERS)
    assert sorted(named("### Rooms of exposure")) == sorted(
        packages("mcp_django/exposure") | files
    )
    assert sorted(named("### Modules of transports")) == sorted(transports)
    assert sorted(named("### Other rooms")) == sorted(rooms)


@pytest.mark.parametrize(
    ("heading", "container"),
    [
        ("### Packages", "mcp_django"),
        ("### Rooms of exposure", "mcp_django.exposure"),
        ("### Modules of transports", "mcp_django.transports"),
    ],
)
def test_imports_point_down_the_map(heading, container):
    order = layers(container)
    ranks = [
        rank
        for name in named(heading)
        for rank, layer in enumerate(order)
        if name.removesuffix(".py") in layer
    ]

    assert len(ranks) == len(named(heading))
    assert all(upper <= lower for upper, lower in pairwise(ranks))


def test_the_map_names_every_module_next_to_the_packages():
    text = PAGE.read_text().partition("### Modules next to the packages")[2].partition("\n## ")[0]

    assert set(re.findall(r"`(\w+)\.py`", text)) == modules("mcp_django")
