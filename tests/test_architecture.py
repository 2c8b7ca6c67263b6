"""What must hold for the whole package, whoever changes it."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import mcp_django
import mcp_django.protocol

PACKAGE = Path(mcp_django.__file__).parent
PROTOCOL = sorted(
    f"mcp_django.protocol.{module.name}"
    for module in pkgutil.iter_modules(mcp_django.protocol.__path__)
)
#: Looks for Django and what stands on it among the modules that an import left behind.
CODE = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sorted(sys.modules.keys() & {"django", "channels", "asgiref"}))
"""


def imported_by(*modules):
    """Which of Django, channels and asgiref a fresh interpreter has loaded after these imports."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *modules],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split()


def test_the_protocol_imports_neither_django_nor_channels_nor_asgiref():
    assert "mcp_django.protocol.jsonrpc" in PROTOCOL

    assert imported_by(*PROTOCOL) == []


def test_importing_the_package_imports_no_django():
    assert imported_by("mcp_django") == []


def test_what_looks_for_django_finds_it():
    assert imported_by("django", "asgiref") == ["asgiref", "django"]


def test_the_public_names_are_those_that_can_be_resolved():
    assert set(mcp_django.__all__) == set(mcp_django.HOMES)
    assert list(mcp_django.__all__) == sorted(mcp_django.__all__)


@pytest.mark.parametrize("name", mcp_django.__all__)
def test_a_public_name_is_the_object_in_its_home(name):
    module, attribute = mcp_django.HOMES[name]

    found = getattr(mcp_django, name)

    assert found is getattr(sys.modules[f"mcp_django.{module}"], attribute)


def test_the_public_names_are_what_type_checkers_see():
    source = Path(mcp_django.__file__).read_text()
    typed = source.partition("if TYPE_CHECKING:\n")[2].partition("\n__all__")[0]
    seen = {
        alias.asname or alias.name
        for statement in ast.parse(dedent(typed)).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }

    assert seen == set(mcp_django.__all__)


def test_any_other_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        mcp_django.nothing  # noqa: B018


def test_no_file_of_the_package_is_longer_than_400_lines():
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text().splitlines())
        for path in PACKAGE.rglob("*.py")
        if "migrations" not in path.parts
    }

    assert lengths
    assert {path: length for path, length in lengths.items() if length > 400} == {}
