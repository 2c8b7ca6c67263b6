"""What the pages say about the code, compared with the code."""

from __future__ import annotations

import ast
import inspect
import json
import re

import pytest
from django.core.management import get_commands
from django.dispatch import Signal

import mcp_django
from mcp_django import auth, signals
from mcp_django.conf import Config, package_version
from mcp_django.exposure import (
    aggregates,
    cursors,
    find,
    groups,
    metrics,
    ordering,
    paths,
    query,
    records,
    uris,
    values,
)
from mcp_django.exposure.code_prompts import prompt
from mcp_django.exposure.code_resources import resource
from mcp_django.exposure.functions import scope_of, tool
from mcp_django.exposure.operators import MEASURES, OPERATORS, transforms_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.record_tools import RECORD_TOOLS
from mcp_django.exposure.tools import BUILT_IN
from mcp_django.models import CallRecord
from mcp_django.principal import SCOPES
from mcp_django.protocol.methods import METHODS
from mcp_django.templating.tags import LIBRARY
from mcp_django.testing import Client
from mcp_django.transports.middleware import BROWSER_ONLY
from tests.docs.pages import PAGES, ROOT, Block, blocks, regions, sources, table

DOCS = ROOT / "docs"
README = ROOT / "README.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
EVERYTHING = "\n".join(page.read_text() for page in PAGES)


def codes(cell: str) -> list[str]:
    return CODE.findall(cell)


def column(page, heading, number=0) -> list[str]:
    """What stands in code in one column of a table."""
    return [name for row in table(page, heading) for name in codes(row[number])]


# Examples


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_every_example_is_part_of_a_file_that_runs(block: Block):
    text = block.text.strip()

    # The tutorial writes these lines into files of its own, and runs them.
    is_run = block.page.name == "tutorial.md" and block.path is not None
    assert is_run or text in regions() or any(text in source for source in sources()), (
        f"{block} is neither a region of docs/examples nor a quotation"
    )


def test_every_region_of_the_examples_is_shown():
    shown = {block.text.strip() for block in blocks("python")}

    assert regions() <= shown


def test_the_tutorial_shows_what_the_examples_have():
    ours = [one for one in blocks("python") if one.page.name == "tutorial.md"]

    different = [one.path for one in ours if one.text.strip() not in regions()]
    # There the app is not installed yet, and nothing is public.
    assert different == ["mysite/settings.py"]


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_every_json_block_is_json(block: Block):
    json.loads(block.text)


def test_the_configurations_of_clients_are_those_that_the_demo_prints():
    printed = (ROOT / "templates" / "demo" / "connect.txt").read_text()
    found = [one.text for one in blocks("json") if one.page == README]
    # Of stdio the demo prints nothing: that has no address.
    shown = [json.loads(text) for text in found if '"url"' in text]

    assert len(shown) == 2
    for configuration in shown:
        text = json.dumps(configuration)
        for ours, theirs in (
            ("my-shop", "flight-desk"),
            ("http://127.0.0.1:8000/mcp", "{{ endpoint }}"),
            ("TOKEN", "{{ token }}"),
        ):
            text = text.replace(ours, theirs)
        assert text in printed
    assert "claude mcp add --transport http flight-desk {{ endpoint }} --header" in printed
    assert "claude mcp add --transport http my-shop" in README.read_text()


# Links, commands and names


def anchors(page) -> set[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page):
    for link in LINK.findall(page.read_text()):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_index():
    index = (DOCS / "index.md").read_text()

    pages = {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    assert pages <= set(LINK.findall(index))


def test_every_make_target_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"`?\bmake ([a-z]+)[` \n]", README.read_text())) <= targets
    for text in codes(EVERYTHING):
        if text.startswith("make "):
            assert text.split()[1] in targets, text


def test_every_management_command_exists():
    named = set(re.findall(r"manage\.py (\w+)", EVERYTHING))

    assert {"mcp_token", "migrate", "check"} <= named
    assert named <= set(get_commands())


def test_the_commands_about_tokens_are_understood():
    from mcp_django.management.commands.mcp_token import Command

    text = (DOCS / "tokens.md").read_text()
    lines = re.findall(r"manage\.py mcp_token ([^`\n)]+)", text + README.read_text())
    parser = Command().create_parser("manage.py", "mcp_token")

    assert len(lines) > 5
    for line in lines:
        parser.parse_args(re.findall(r'"[^"]*"|\S+', line))


def test_files_that_the_pages_name_exist():
    for page in PAGES:
        for name in codes(page.read_text()):
            if re.fullmatch(r"(mcp_django|demo_project|docs|tests)/[\w./]*", name):
                assert (ROOT / name).exists(), f"{page.name}: {name}"


# Tables


def test_every_setting_is_listed_with_its_default():
    found = {}
    for heading in re.findall(r"^## .+$", (DOCS / "settings.md").read_text(), re.MULTILINE)[:-1]:
        for name, default, meaning in table(DOCS / "settings.md", heading):
            assert meaning.endswith(".") or "](" in meaning
            found[name.strip("`")] = default.strip("`")

    config = {name.upper(): value for name, value in vars(Config()).items()}
    assert found.pop("VERSION") == ""
    assert config.pop("VERSION") == package_version()
    given = {name: ast.literal_eval(default) for name, default in found.items()}
    assert given == {
        name: list(value) if isinstance(value, tuple) else value for name, value in config.items()
    }


def test_every_column_and_outcome_of_a_record_is_listed():
    lines = (DOCS / "audit.md").read_text().partition("| Outcome | Means |")[2]
    outcomes = re.findall(r"^\| `(\w+)` \|", lines.partition("\n\n")[0], re.MULTILINE)

    assert column(DOCS / "audit.md", "## Records of calls") == [
        field.name for field in CallRecord._meta.fields if not field.primary_key
    ]
    assert sorted(outcomes) == sorted(CallRecord.Outcome.values)


def test_every_signal_is_listed():
    found = [name for name, value in vars(signals).items() if type(value) is Signal]

    assert column(DOCS / "audit.md", "## Signals") == found


def test_every_check_is_listed():
    sources = (path.read_text() for path in (ROOT / "mcp_django").glob("checks*.py"))
    page = (DOCS / "checks.md").read_text()

    ids = set(re.findall(r'id="(mcp_django\.[EWI]\d{3})"', "".join(sources)))
    assert ids
    assert set(re.findall(r"^## (.+)$", page, re.MULTILINE)) == ids


def test_every_attribute_of_an_exposure_is_listed():
    attributes = [
        name
        for name, value in vars(ModelExposure).items()
        if not name.startswith("_") and not callable(value) and not isinstance(value, property)
    ]

    assert sorted(column(DOCS / "registering.md", "## Models")) == sorted(attributes)


def test_every_attribute_of_an_admin_is_listed():
    source = (ROOT / "mcp_django" / "exposure" / "admin_options.py").read_text()

    listed = column(DOCS / "registering.md", "## Models, from the admin")
    assert set(listed) == set(re.findall(r'"(mcp_\w+)"', source))


def test_every_option_of_a_tool_is_listed():
    options = set(inspect.signature(tool).parameters) - {"function", "registry"}

    assert set(column(DOCS / "registering.md", "## Functions")) == options


def test_every_option_of_a_resource_is_listed():
    options = set(inspect.signature(resource).parameters) - {"registry"}

    assert set(column(DOCS / "resources.md", "## Functions as resources")) == options


def test_every_variable_that_is_completed_is_listed():
    listed = set(column(DOCS / "resources.md", "## Completion")) - {"status"}

    templates = (uris.DEFINITION, uris.COLLECTION, uris.OBJECT, uris.FILE)
    assert listed == {name for one in templates for name in one.variables}


def test_the_scope_of_each_kind_of_tool_is_told():
    lines = (DOCS / "registering.md").read_text().partition("The options decide which scope")[2]
    told = dict(re.findall(r"^\| `?([\w=]+|says neither)`? \| `(mcp:\w+)` \|$", lines, re.M))

    assert told == {
        "read_only=True": scope_of(read_only=True, destructive=None),
        "destructive=False": scope_of(read_only=False, destructive=False),
        "destructive=True": scope_of(read_only=False, destructive=True),
        "says neither": scope_of(read_only=False, destructive=None),
    }
    assert set(told.values()) == set(SCOPES)


def test_every_generic_tool_is_listed_with_its_arguments():
    listed = {
        codes(name)[0]: codes(arguments)
        for name, arguments, _ in table(DOCS / "tools.md", "## The generic tools")
    }

    assert set(listed) == BUILT_IN
    for name, arguments in listed.items():
        assert arguments == list(RECORD_TOOLS[name].arguments.schema.get("properties", {})), name


def test_every_argument_of_a_query_is_listed():
    assert column(DOCS / "querying.md", "# Querying") == ["model", *find.ARGUMENTS]


def test_every_uri_is_listed():
    templates = [uris.DEFINITION, uris.COLLECTION, uris.OBJECT, uris.FILE]

    listed = column(DOCS / "tools.md", "## Resources")
    assert listed == [uris.SITE, *(one.text for one in templates)]


def test_every_method_is_listed():
    rows = table(DOCS / "tools.md", "## Methods of the protocol")

    assert {name for row in rows for name in codes(row[0])} == set(METHODS)


def test_the_file_of_a_prompt_is_shown_as_it_is():
    file = ROOT / "docs/examples/shop/templates/mcp/prompts/late_order.md"

    shown = [block.text for block in blocks("text") if block.page.name == "prompts.md"]

    assert shown == [file.read_text()]


def test_every_option_of_a_prompt_is_listed():
    options = set(inspect.signature(prompt).parameters) - {"function", "registry"}

    assert set(column(DOCS / "prompts.md", "## Prompts in code")) >= {"str", "Literal"}
    told = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", (DOCS / "prompts.md").read_text(), re.M)
    assert options <= {name for cell in told for name in codes(cell)}


def test_every_tag_and_filter_of_prompts_is_listed():
    rows = table(DOCS / "prompts.md", "### The template language")
    told = {what: codes(which) for what, which in rows}

    assert told == {"tags": sorted(LIBRARY.tags), "filters": sorted(LIBRARY.filters)}


def test_every_operator_is_listed():
    told = {
        kind: codes(operators)
        for kinds, operators in table(DOCS / "querying.md", "## Operators")
        for kind in kinds.split(", ")
    }

    assert told == {kind: list(operators) for kind, operators in OPERATORS.items()}


def test_every_part_of_a_date_is_listed():
    page = DOCS / "querying.md"
    lines = page.read_text().partition("Parts of dates and times")[2]
    told = dict(re.findall(r"^\| (date|datetime|time) \| (.+) \|$", lines, re.MULTILINE))

    assert {kind: codes(parts) for kind, parts in told.items()} == {
        kind: list(transforms_of(kind)) for kind in ("date", "datetime", "time")
    }


def test_every_limit_of_a_query_is_the_true_one():
    told = {name: int(limit) for name, limit in table(DOCS / "querying.md", "## Limits")}

    assert told == {
        "Conditions in one object": query.MAX_CONDITIONS,
        "Alternatives in `any_of`": query.MAX_ALTERNATIVES,
        "Words in `search`": query.MAX_WORDS,
        "Characters in a text value": values.TERM,
        "Values in a list": values.ITEMS,
        "Names in `order_by`": ordering.MAX_ORDER,
        "Names in `group_by`": groups.MAX_GROUPS,
        "Metrics": metrics.MAX_METRICS,
        "Comparisons in `having`": aggregates.MAX_HAVING,
        "Groups in an answer": aggregates.MAX_LIMIT,
        "Names in `fields`": records.MAX_FIELDS,
        "Relations in a path": paths.MAX_HOPS,
        "Seconds that a cursor is good for": cursors.LIFETIME.total_seconds(),
    }


def test_every_argument_and_function_of_an_aggregate_is_listed():
    page = DOCS / "querying.md"
    lines = page.read_text().partition("## Groups and numbers")[2].partition("## Operators")[0]
    told = dict(re.findall(r"^\| ([a-z, ]+) \| ((?:`\w+` ?)+) \|$", lines, re.MULTILINE))

    assert column(page, "## Groups and numbers") == ["model", *aggregates.ARGUMENTS]
    assert {
        kind: codes(names)
        for kinds, names in told.items()
        for kind in kinds.split(", ")
        if kinds.count(", ")
    } == {kind: list(names) for kind, names in MEASURES.items()}
    parts = lines.partition("Dates are grouped by these")[2]
    listed = dict(re.findall(r"^\| (date|datetime) \| (.+) \|$", parts, re.MULTILINE)[:2])
    assert {kind: codes(names) for kind, names in listed.items()} == {
        kind: list(names) for kind, names in groups.PARTS.items()
    }


def test_every_authenticator_is_listed():
    listed = column(DOCS / "tokens.md", "## Other credentials")

    public = {f"mcp_django.auth.{name}" for name in auth.__all__}
    assert set(listed) == public - {"mcp_django.auth.Authenticator"}


def test_every_method_of_the_test_client_is_there():
    for name in re.findall(r"`(\w+)\(", "\n".join(
        row[0] for row in table(DOCS / "testing.md", "## The client")
    )):  # fmt: skip
        assert callable(getattr(Client, name)), name


def test_the_middleware_that_does_not_run_is_named():
    told = (DOCS / "deploying.md").read_text().lower().replace("conditional get", "conditional")

    for path in BROWSER_ONLY:
        assert path.split(".")[-2].replace("http", "conditional") in told, path


def test_the_demo_has_the_users_that_the_readme_names():
    source = ast.parse((ROOT / "demo_project/flights/seeding/users.py").read_text())
    users = [
        {one.arg: ast.literal_eval(one.value) for one in node.keywords if one.arg in USER}
        for node in ast.walk(source)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "DemoUser"
    ]

    told = [[name.strip("`"), sees] for name, sees in table(README, "## The demo")]
    assert told == [[one["username"], one["sees"]] for one in users]


USER = ("username", "sees")


def test_the_readme_names_the_versions_that_the_package_accepts():
    project = (ROOT / "pyproject.toml").read_text()
    text = README.read_text()

    assert 'requires-python = ">=3.11"' in project
    assert "Python 3.11 or later" in text
    versions = re.findall(r'"Framework :: Django :: ([\d.]+)"', project)
    assert f"Django {', '.join(versions[:-1])} and {versions[-1]}." in text
    assert 'license = "BSD-3-Clause"' in project
    assert "License: [BSD-3-Clause](LICENSE)" in text


def test_no_page_names_a_machine_or_a_registry():
    hosts = set(re.findall(r"https?://([\w.-]+)", EVERYTHING))

    assert hosts <= {"127.0.0.1", "shop.example.com", "modelcontextprotocol.io"}


def test_every_public_name_is_documented():
    missing = [name for name in mcp_django.__all__ if f"mcp.{name}" not in EVERYTHING]
    assert missing == []
