"""What the pages say about the code, compared with the code."""

from __future__ import annotations

import ast
import json
import re
import subprocess

import pytest
from django.core.management import get_commands
from django.dispatch import Signal

import mcp_django
from mcp_django import auth, signals
from mcp_django.conf import Config
from mcp_django.exposure import fields, paths, uris
from mcp_django.exposure.fields import MEASURES, OPERATORS, transforms_of
from mcp_django.exposure.options import (
    AMBIGUOUS,
    CERTAIN,
    SECRET_APPS,
    SECRET_FIELDS,
    SECRET_MODELS,
    ModelExposure,
)
from mcp_django.exposure.primitives import BUILT_IN
from mcp_django.exposure.prompts.functions import PromptOptions
from mcp_django.exposure.query import (
    aggregates,
    filters,
    find,
    pagination,
    related_names,
    selection,
)
from mcp_django.exposure.query.arguments import MOST_GROUPS
from mcp_django.exposure.resources.functions import ResourceOptions
from mcp_django.exposure.tools.functions import ToolOptions
from mcp_django.exposure.tools.records import RECORD_TOOLS
from mcp_django.management.commands import mcp_token
from mcp_django.models import CallRecord
from mcp_django.principal import SCOPES
from mcp_django.protocol.methods import METHODS
from mcp_django.templating.library import LIBRARY
from mcp_django.testing import Client
from tests.docs.pages import PAGES, ROOT, Block, blocks, name_of, regions, sources, table
from tests.services import path_of
from tests.waiting import LONG_PATIENCE

DOCS = ROOT / "docs"
HOWTO, TOPICS, REFERENCE = DOCS / "howto", DOCS / "topics", DOCS / "reference"
README = ROOT / "README.md"
ENDPOINT = "http://127.0.0.1:8000/mcp"
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


def test_every_region_of_the_examples_is_shown_and_the_tutorial_shows_no_other():
    shown = {block.text.strip() for block in blocks("python")}
    ours = [one for one in blocks("python") if one.page.name == "tutorial.md"]

    different = [one.path for one in ours if one.text.strip() not in regions()]
    assert regions() <= shown
    # There the app is not installed yet, and nothing is public.
    assert different == ["mysite/settings.py"]


def test_the_configurations_of_clients_are_those_that_the_demo_prints():
    printed = (ROOT / "templates" / "demo" / "connect.txt").read_text()
    pages = (README, HOWTO / "connect.md", HOWTO / "clients" / "vs-code.md")
    shown = [block for block in blocks("json") if block.page in pages]

    assert [block.page for block in shown] == [*pages]
    for block in shown:
        text = json.dumps(json.loads(block.text))
        for ours, theirs in (
            ("my-shop", "flight-desk"),
            (ENDPOINT, "{{ endpoint }}"),
            ("TOKEN", "{{ token }}"),
        ):
            text = text.replace(ours, theirs)
        assert text in printed
    assert "claude mcp add --transport http flight-desk {{ endpoint }} --header" in printed
    for page in (README, HOWTO / "clients" / "claude-code.md"):
        assert f"claude mcp add --transport http my-shop {ENDPOINT} --header" in page.read_text()


@pytest.mark.needs("nginx")
def test_nginx_takes_the_configurations_of_the_page(tmp_path):
    site, below_a_path = (block.text for block in blocks("nginx"))
    # There is no certificate here, and nobody who may listen at a low port.
    site = site.replace("listen 443 ssl;", "listen 127.0.0.1:8443;")

    for text in (site, site.replace("    location / {\n", below_a_path)):
        paths = "".join(f"{name}_temp_path {name};" for name in PATHS_OF_NGINX)
        file = tmp_path / "nginx.conf"
        file.write_text(f"pid nginx.pid; events {{}} http {{ access_log off; {paths} {text} }}")
        command = [path_of("nginx"), "-t", "-p", tmp_path, "-e", "stderr", "-c", file]
        tried = subprocess.run(command, capture_output=True, text=True, timeout=LONG_PATIENCE)
        assert tried.returncode == 0, tried.stderr


#: Directories that it makes at its start, also where it is not used.
PATHS_OF_NGINX = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


# Links, commands and names


def anchors(page) -> set[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_somewhere(page):
    for link in LINK.findall(page.read_text()):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_make_target_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    typed = "".join(block.text for block in blocks("console"))
    assert set(re.findall(r"^\$ make ([a-z-]+)", typed, re.MULTILINE)) <= targets
    for text in codes(EVERYTHING):
        if text.startswith("make "):
            assert text.split()[1] in targets, text


def test_every_management_command_exists_and_those_about_tokens_are_understood():
    named = set(re.findall(r"manage\.py (\w+)", EVERYTHING))
    text = (TOPICS / "tokens.md").read_text()
    lines = re.findall(r"manage\.py mcp_token ([^`\n)]+)", text + README.read_text())
    parser = mcp_token.Command().create_parser("manage.py", "mcp_token")

    assert {"mcp_token", "migrate", "check"} <= named
    assert named <= set(get_commands())
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
    page = REFERENCE / "settings.md"
    for heading in re.findall(r"^## .+$", page.read_text(), re.MULTILINE)[:-1]:
        for name, default, meaning in table(page, heading):
            assert meaning.endswith(".") or "](" in meaning
            found[name.strip("`")] = default.strip("`")

    config = {name.upper(): value for name, value in vars(Config()).items()}
    assert found.pop("VERSION") == ""
    assert config.pop("VERSION") == mcp_django.__version__
    given = {name: ast.literal_eval(default) for name, default in found.items()}
    assert given == {
        name: list(value) if isinstance(value, tuple) else value for name, value in config.items()
    }


def names_of(tool):
    return list(RECORD_TOOLS[tool].arguments.schema.get("properties", {}))


TEMPLATES = [uris.DEFINITION, uris.COLLECTION, uris.OBJECT, uris.FILE]
ADMIN_SITES = (ROOT / "mcp_django" / "exposure" / "admin_sites.py").read_text()
AUTHENTICATORS = [f"mcp_django.auth.{name}" for name in auth.__all__ if name != "Authenticator"]
#: What stands in a column of a table, and what the code has.
LISTS = [
    (
        TOPICS / "audit.md",
        "## Records of calls",
        [one.name for one in CallRecord._meta.fields[1:]],
    ),
    (TOPICS / "audit.md", "| Outcome | Means |", CallRecord.Outcome.values),
    (
        TOPICS / "audit.md",
        "## Signals",
        [k for k, v in vars(signals).items() if type(v) is Signal],
    ),
    (TOPICS / "registering.md", "## Models", ModelExposure.__annotations__),
    (
        TOPICS / "registering.md",
        "## Models, from the admin",
        re.findall(r'"(mcp_\w+)"', ADMIN_SITES),
    ),
    (TOPICS / "registering.md", "## Functions", ToolOptions.__annotations__.keys()),
    (
        TOPICS / "resources.md",
        "## Functions as resources",
        {"uri", *ResourceOptions.__annotations__},
    ),
    (
        TOPICS / "resources.md",
        "## Completion",
        [*(name for one in TEMPLATES for name in one.variables), "status"],
    ),
    (TOPICS / "querying.md", "# Querying", names_of("find_records")),
    (TOPICS / "querying.md", "## Groups and numbers", names_of("aggregate_records")),
    (REFERENCE / "tools.md", "## Resources", [uris.SITE, *(one.text for one in TEMPLATES)]),
    (REFERENCE / "tools.md", "## Methods of the protocol", METHODS),
    (
        TOPICS / "authenticators.md",
        "# Choosing an authenticator",
        [*AUTHENTICATORS, "mcp_django.oauth.bearer.OAuthBearer"],
    ),
]


@pytest.mark.parametrize(("page", "heading", "names"), LISTS, ids=[one[1] for one in LISTS])
def test_a_table_lists_all_that_the_code_has(page, heading, names):
    number = 1 if "authenticator" in heading else 0

    assert set(column(page, heading, number)) == set(names)


def test_every_fault_of_a_running_site_has_a_row_and_every_row_has_a_test():
    ours = "tests/faults/test_processes.py"
    named = column(HOWTO / "faults.md", "# When a part of the site fails", 3)
    rows = [name.split("::") for name in named]

    for file, test in rows:
        assert f"\ndef {test}(" in (ROOT / file).read_text()
    written = re.findall(r"^def (test_\w+)", (ROOT / ours).read_text(), re.MULTILINE)
    assert sorted(test for file, test in rows if file == ours) == sorted(written)


def test_every_check_is_listed():
    sources = (path.read_text() for path in (ROOT / "mcp_django").glob("**/checks.py"))
    page = (REFERENCE / "checks.md").read_text()

    ids = set(re.findall(r'id="(mcp_django(?:_oauth)?\.[EWI]\d{3})"', "".join(sources)))
    assert ids
    assert set(re.findall(r"^## (.+)$", page, re.MULTILINE)) == ids


def test_every_column_that_no_name_betrays_is_listed():
    rows = table(TOPICS / "registering.md", "## Columns that look secret")

    listed = {codes(model)[0]: columns for model, columns in rows}
    wholly = {model for model, columns in listed.items() if columns == "all"}
    partly = {model: set(codes(listed[model])) for model in listed.keys() - wholly}
    assert wholly == SECRET_MODELS
    assert partly == SECRET_FIELDS


def test_every_word_and_app_of_secrets_is_listed():
    text = (TOPICS / "registering.md").read_text().partition("## Columns that look secret\n")[2]
    _, words, ambiguous, _, apps, _ = text.partition("\n|")[0].split("\n- ")

    codes_and_credentials = ("(recovery|backup)_?codes?", "recovery_code|backup_code")
    certain = CERTAIN.replace(*codes_and_credentials).replace("credentials?", "credential")
    certain, _, keys = certain.removesuffix(")_key").partition("(")
    keys = [f"{word}_key" for word in keys.split("|")]
    assert codes(words) == [*certain.rstrip("|").split("|"), *keys]
    assert codes(ambiguous)[: -len(["list_display", "search_fields", "ModelAdmin"])] == (
        AMBIGUOUS.split("|")
    )
    assert set(codes(apps)) == SECRET_APPS


def test_every_option_of_a_prompt_is_listed_and_its_file_is_shown_as_it_is():
    file = ROOT / "docs/examples/shop/templates/mcp/prompts/late_order.md"

    shown = [block.text for block in blocks("text") if block.page.name == "prompts.md"]
    told = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", (TOPICS / "prompts.md").read_text(), re.M)
    assert shown == [file.read_text()]
    assert set(column(TOPICS / "prompts.md", "## Prompts in code")) >= {"str", "Literal"}
    assert set(PromptOptions.__annotations__) <= {name for cell in told for name in codes(cell)}


#: In the order of their scopes.
KINDS_OF_TOOLS = ("read_only=True", "destructive=False", "destructive=True", "says neither")
#: What stands in the second column of a table beside the first, and what the code has.
MAPPINGS = [
    (
        TOPICS / "prompts.md",
        "### The template language",
        {"tags": sorted(LIBRARY.tags), "filters": sorted(LIBRARY.filters)},
    ),
    (TOPICS / "querying.md", "## Operators", OPERATORS),
    (TOPICS / "querying.md", "| Kind of field | Functions |", MEASURES),
    (
        TOPICS / "querying.md",
        "Dates are grouped by these, as in `placed_at__trunc_month`:",
        aggregates.PARTS,
    ),
    (
        TOPICS / "querying.md",
        "Parts of dates and times come between the path and the operator, as in "
        "`placed_at__year__gte`:",
        {kind: transforms_of(kind) for kind in ("date", "datetime", "time")},
    ),
    # Which options give which scope: tests/exposure/tools/test_functions.py.
    (
        TOPICS / "registering.md",
        "The options decide which scope a [token](tokens.md) needs for the tool:",
        dict(zip(KINDS_OF_TOOLS, ([scope] for scope in SCOPES), strict=True)),
    ),
    (REFERENCE / "tools.md", "## The generic tools", {name: names_of(name) for name in BUILT_IN}),
]


@pytest.mark.parametrize(
    ("page", "heading", "mapping"), MAPPINGS, ids=[one[1] for one in MAPPINGS]
)
def test_a_table_says_of_each_what_the_code_has(page, heading, mapping):
    told = {
        kind.strip("`"): codes(names)
        for kinds, names, *_ in table(page, heading)
        for kind in kinds.split(", ")
    }

    assert told == {kind: list(names) for kind, names in mapping.items()}


def test_every_limit_of_a_query_is_the_true_one():
    told = {name: int(limit) for name, limit in table(TOPICS / "querying.md", "## Limits")}

    assert told == {
        "Conditions in one object": filters.MAX_CONDITIONS,
        "Alternatives in `any_of`": filters.MAX_ALTERNATIVES,
        "Words in `search`": filters.MAX_WORDS,
        "Characters in a text value": fields.TERM,
        "Values in a list": fields.ITEMS,
        "Related records by name": related_names.MOST_TEXTS,
        "Names in `order_by`": pagination.MAX_ORDER,
        "Names in `group_by`": aggregates.MAX_GROUPS,
        "Metrics": aggregates.MAX_METRICS,
        "Comparisons in `having`": aggregates.MAX_HAVING,
        "Groups in an answer": MOST_GROUPS,
        "Names in `fields`": selection.MAX_FIELDS,
        "Relations in a path": paths.MAX_HOPS,
        "Seconds that a cursor is valid": pagination.LIFETIME.total_seconds(),
    }
    sentence = f"If none of the next {find.FARTHEST:,} records"
    assert sentence in (TOPICS / "rights.md").read_text()


def test_every_method_of_the_test_client_is_there():
    for name in re.findall(r"`(\w+)\(", "\n".join(
        row[0] for row in table(HOWTO / "testing.md", "## The client")
    )):  # fmt: skip
        assert callable(getattr(Client, name)), name


@pytest.mark.parametrize("page", [README, REFERENCE / "compatibility.md"], ids=str)
def test_the_page_names_the_versions_that_the_package_accepts(page):
    project = (ROOT / "pyproject.toml").read_text()
    text = page.read_text()

    assert 'requires-python = ">=3.11"' in project
    assert "Python 3.11 or later" in text
    versions = re.findall(r'"Framework :: Django :: ([\d.]+)"', project)
    assert f"Django {', '.join(versions[:-1])} and {versions[-1]}." in text


def test_every_public_name_is_documented():
    missing = [name for name in mcp_django.__all__ if f"mcp.{name}" not in EVERYTHING]
    assert missing == []
