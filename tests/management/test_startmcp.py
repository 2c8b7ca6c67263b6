from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec

import pytest
from django.apps import apps
from django.core.management import CommandError, get_commands

from tests.children import ROOT, finished

COMMAND = "startmcp"
needs_admin = pytest.mark.skipif(
    not apps.is_installed("django.contrib.admin"), reason="It reads the admin."
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where three apps seem to be."""
    # Django remembers where commands are, for the tests after this one as well.
    get_commands()
    for label in ("auth", "sessions", "shop"):
        monkeypatch.setattr(apps.get_app_config(label), "path", str(tmp_path))
    return tmp_path


def class_in(text: str, model: str) -> str:
    return text.partition(f"class {model}Exposure(mcp.ModelExposure):\n")[2].split("\n\n")[0]


@needs_admin
def test_a_model_gets_what_its_admin_shows_and_secrets_stay_comments(run, folder):
    out = run("auth").out
    text = (folder / "mcp.py").read_text()

    assert "from django.contrib.auth.models import Group, User\n" in text
    assert class_in(text, "Group").splitlines() == [
        '    fields = ["id", "name", "permissions"]',
        '    search_fields = ["name"]',
        '    label_fields = ["name"]',
        '    ordering = ["name"]',
    ]
    fields, _, rest = class_in(text, "User").partition("    ]\n")
    assert '        "date_joined",\n' in fields
    assert "        # These look secret." in fields
    assert fields.endswith('        # "password",\n')
    assert "password" not in rest
    assert f"{folder / 'mcp.py'}: Group, User\n" in out
    assert "Without Permission." in out


@needs_admin
def test_filters_of_the_list_and_limits_of_an_admin_are_taken_over(run, folder, monkeypatch):
    from django.contrib.admin import site
    from django.contrib.auth.models import Group, User

    monkeypatch.setattr(site._registry[User], "list_filter", ["is_staff", "groups__name"])
    monkeypatch.setattr(site._registry[User], "mcp_fields", ["id", "username"], raising=False)
    monkeypatch.setattr(site._registry[Group], "mcp_exclude_fields", ["name"], raising=False)

    run("auth")

    text = (folder / "mcp.py").read_text()
    assert class_in(text, "User").splitlines()[:2] == [
        '    fields = ["id", "username"]',
        '    more_filter_fields = ["is_staff", "groups__name"]',
    ]
    assert class_in(text, "Group").splitlines()[:2] == [
        '    fields = ["id", "permissions"]',
        '    exclude = ["name"]',
    ]


@needs_admin
def test_what_code_opened_elsewhere_is_left_out(run, folder):
    run("shop")

    text = (folder / "mcp.py").read_text()
    assert "from tests.shop.models import Ledger\n" in text
    assert '        # "pin",\n' in class_in(text, "Ledger")


@needs_admin
@pytest.mark.parametrize(
    ("app", "existing", "sentence"),
    [
        ("auht", "", "No installed app with label 'auht'"),
        ("auth", "mcp.py", "mcp.py already. To overwrite a file, add --force."),
        ("auth", "mcp/", "already"),
        ("sessions", "", "There is no model of sessions to open."),
    ],
)
def test_a_mistake_is_told_in_a_sentence_and_writes_nothing(run, folder, app, existing, sentence):
    if existing.endswith("/"):
        (folder / existing).mkdir()
    elif existing:
        (folder / existing).write_text("mine")

    with pytest.raises(CommandError, match=sentence):
        run(app)

    assert [path.name for path in folder.iterdir()] == [existing.rstrip("/")] * bool(existing)
    assert existing != "mcp.py" or (folder / existing).read_text() == "mine"


@needs_admin
def test_force_overwrites_a_file_and_never_a_package(run, folder):
    (folder / "mcp.py").write_text("mine")
    run("auth", "--force")

    assert "class UserExposure" in (folder / "mcp.py").read_text()
    (folder / "mcp").mkdir()
    with pytest.raises(CommandError, match="already"):
        run("auth", "--force")


@needs_admin
def test_packages_that_are_installed_get_no_file(run):
    with pytest.raises(CommandError, match="Write to an app of your own"):
        run("auth")


def test_without_the_admin_there_is_nothing_to_read(run, settings):
    settings.INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "mcp_django"]

    with pytest.raises(CommandError, match=r"needs django\.contrib\.admin"):
        run("auth")


#: Sites with an admin: where they are, their settings, the label and the folder of their app, and
#: a model that is open afterwards.
SITES = [
    ("docs/examples", "mysite.settings", "shop", "shop", "shop.order"),
    ("", "demo_project.settings", "flights", "demo_project/flights", "flights.passenger"),
]


@pytest.mark.live
@pytest.mark.thorough
@pytest.mark.needs("daphne", "drf", "oauth")
@pytest.mark.parametrize(("root", "settings", "app", "path", "model"), SITES)
def test_the_file_passes_the_checks_and_formatters_and_opens_the_models(
    tmp_path, root, settings, app, path, model
):
    top = path.split("/")[0]
    for name in {top, settings.split(".")[0]}:
        shutil.copytree(ROOT / root / name, tmp_path / name)
    (tmp_path / path / "mcp.py").unlink()
    variables = {
        "DJANGO_SETTINGS_MODULE": settings,
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "DEMO_STATE": str(tmp_path / "state"),
    }

    def django(*arguments):
        done = finished("-m", "django", *arguments, cwd=tmp_path, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    django("startmcp", app)
    django("check", "--fail-level", "ERROR")
    django("startmcp", app, "--force")

    assert f"model\t{model}\tread, opened by code" in django("mcp_list")
    if find_spec("ruff"):
        for arguments in (("format", "--check"), ("check", "--select", "E,F,I,W")):
            ruff = ("-m", "ruff", *arguments, "--isolated", f"{path}/mcp.py")
            done = finished(*ruff, cwd=tmp_path)
            assert done.returncode == 0, done.stdout + sys.version
