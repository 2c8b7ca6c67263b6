"""What must hold for the whole package, whoever changes it."""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

import mcp_django
import mcp_django.protocol
from tests.children import finished

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
    done = finished("-c", CODE, *modules)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("modules", "loaded"),
    [
        (["mcp_django"], []),
        (PROTOCOL, []),
        # What looks for them finds them.
        (["django", "asgiref"], ["asgiref", "django"]),
    ],
    ids=["package", "protocol", "django"],
)
def test_the_protocol_and_the_package_import_no_django(modules, loaded):
    assert "mcp_django.protocol.jsonrpc" in PROTOCOL
    assert imported_by(*modules) == loaded


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


def test_a_directory_of_the_package_lists_the_public_names_and_no_private_ones():
    listed = dir(mcp_django)

    assert {name for name in listed if not name.startswith("_")} == set(mcp_django.__all__)
    assert {"__all__", "__doc__", "__file__", "__name__", "__version__"} <= set(listed)


def test_any_other_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        mcp_django.nothing  # noqa: B018


def modules():
    """The parsed modules of the package by their paths, without migrations."""
    return {
        str(path.relative_to(PACKAGE)): path.read_text()
        for path in sorted(PACKAGE.rglob("*.py"))
        if "migrations" not in path.parts
    }


def test_no_module_of_the_package_is_longer_than_700_lines():
    lengths = {path: len(source.splitlines()) for path, source in modules().items()}

    assert lengths
    assert {path: length for path, length in lengths.items() if length > 700} == {}


#: Lines of each room with its blank lines, without migrations. A number may go down, and goes up
#: only where another one goes down by as much: a feature pays with a deletion.
BUDGET = {
    ("protocol",): 1_982,
    ("exposure",): 4_481,
    ("exposure/query",): 5_688,
    ("exposure/admin_bridge", "exposure/forms"): 5_653,
    tuple(
        f"exposure/{name}"
        for name in ("functions", "prompts", "questions", "resources", "rest", "tools")
    ): 8_166,
    ("handlers", "audit", "subscriptions", "auth", "models"): 5_373,
    ("stores", "transports"): 7_629,
    ("admin",): 4_194,
    ("", "templating", "testing", "management", "templatetags"): 6_280,
    ("oauth",): 1_779,
}


def room_of(path):
    """The key of the table for a module: of its folder, or of the one around that."""
    folder = path.rpartition("/")[0]
    while not any(folder in room for room in BUDGET):
        folder = folder.rpartition("/")[0]
    return next(room for room in BUDGET if folder in room)


def test_each_room_of_the_package_keeps_its_budget():
    lines = Counter()
    for path, source in modules().items():
        lines[room_of(path)] += len(source.splitlines())

    assert {room: count for room, count in lines.items() if count > BUDGET[room]} == {}
    # What went is not for the next to fill.
    assert sum(BUDGET.values()) - sum(lines.values()) < 30


def body_length(function):
    """The lines of a function behind its signature and its docstring."""
    documented = ast.get_docstring(function, clean=False) is not None
    statements = function.body[1:] if documented else function.body
    return statements[-1].end_lineno - statements[0].lineno + 1 if statements else 0


@pytest.mark.thorough
def test_no_function_of_the_package_is_longer_than_60_lines():
    lengths = {
        f"{path}:{node.name}": body_length(node)
        for path, source in modules().items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert lengths
    assert {name: length for name, length in lengths.items() if length > 60} == {}


#: Django looks for `Command` and for what URLconfs have, and a type variable means nothing outside
#: of its signatures.
LOCAL_NAMES = {"Command", "T", "app_name", "logger", "urlpatterns"}
#: What clashed when this test was written. Names are taken out of it, never added.
CLASHING_NAMES = Path(__file__).parent / "clashing_names.txt"


def top_level_names(source):
    """The functions, classes and constants of a module, without private ones."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in ast.walk(target)]
            # Of `x.y = 1` the name x is read, not defined.
            names = [
                part.id
                for part in parts
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            ]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_"))


@pytest.mark.thorough
def test_a_top_level_name_means_one_thing_in_the_whole_package():
    homes = Counter(name for source in modules().values() for name in {*top_level_names(source)})
    clashing = {name for name, count in homes.items() if count > 1} - LOCAL_NAMES
    listed = CLASHING_NAMES.read_text().split()

    assert clashing - {*listed} == set(), "Find another name: two modules define this one."
    assert {*listed} - clashing == set(), f"Take this out of {CLASHING_NAMES.name}."
    assert listed == sorted(set(listed))
