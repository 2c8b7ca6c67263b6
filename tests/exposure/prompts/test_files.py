from __future__ import annotations

import os

import pytest
from django.core.checks import run_checks

import mcp_django as mcp
from mcp_django.exposure.prompts.files import LARGEST, PromptFiles
from mcp_django.exposure.registry import registry


@pytest.fixture
def folder(tmp_path, settings):
    """A directory of templates, and the prompts in it."""
    (engine,) = settings.TEMPLATES
    settings.TEMPLATES = [
        {"BACKEND": "django.template.backends.jinja2.Jinja2", "DIRS": ["/nowhere"]},
        {**engine, "DIRS": [tmp_path / "one", str(tmp_path / "two")]},
    ]
    made = tmp_path / "one" / "mcp" / "prompts"
    made.mkdir(parents=True)
    return made


def write(folder, name, text, *, age=0):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    os.utime(path, (age, age))
    return path


def text_of(prompts, name):
    return prompts[name].body.parts[0].content.source


def test_files_of_the_settings_come_before_those_of_apps(folder, tmp_path, settings):
    write(folder, "hello.md", "first")
    write(tmp_path / "two" / "mcp" / "prompts", "hello.md", "second")
    write(tmp_path / "two" / "mcp" / "prompts", "bye.md", "second")

    found = PromptFiles().read()

    assert text_of(found.prompts, "hello") == "first"
    assert text_of(found.prompts, "bye") == "second"
    # In tests/shop/templates.
    assert text_of(found.prompts, "shop_greeting").startswith("Greet")
    assert found.problems == {}


def test_a_broken_file_is_left_out_and_never_empties_the_list(folder, caplog):
    write(folder, "good.md", "Hi")
    write(folder, ".hidden.md", "{{")
    write(folder, "notes.txt", "{{")
    write(folder, "Bad-Name.md", "Hi")
    write(folder, "broken.md", "{% load static %}")
    write(folder, "huge.md", "x" * (LARGEST + 1))
    (folder / "latin.md").write_bytes(b"\xff")
    (folder / "folder.md").mkdir()
    (folder / "gone.md").symlink_to(folder / "nowhere")

    found = PromptFiles().read()

    assert {"good"} <= found.prompts.keys() <= {"good", "shop_greeting"}
    assert {path.name for path in found.problems} == {
        "Bad-Name.md", "broken.md", "huge.md", "latin.md", "folder.md", "gone.md"
    }  # fmt: skip
    assert caplog.text.count("is left out") == 6


@pytest.mark.parametrize("debug", [True, False])
def test_with_debug_a_changed_file_is_read_again(folder, settings, debug):
    settings.DEBUG = debug
    files = PromptFiles()
    path = write(folder, "hello.md", "old")
    before = files.read()
    unchanged = files.read()

    write(folder, "hello.md", "new", age=9)
    changed = files.read()
    write(folder, "other.md", "new")
    (folder / "loop.md").symlink_to(folder / "nowhere")
    path.unlink()
    left = files.read()

    assert unchanged is before
    assert text_of(changed.prompts, "hello") == ("new" if debug else "old")
    assert ("other" in left.prompts, "hello" in left.prompts) == (debug, not debug)
    assert (changed is before) is not debug


def test_code_wins_over_a_file_and_the_check_says_so(folder, monkeypatch):
    write(folder, "hello.md", "file")
    write(folder, "broken.md", "{{ x }}")

    try:
        mcp.prompt(name="hello")(lambda: "code")

        assert type(registry.prompts["hello"]).__name__ == "CodePrompt"
        found = {one.id: one for one in run_checks(tags=["mcp_django"], databases=[])}
    finally:
        registry.remove_prompt("hello")
    assert type(registry.prompts["hello"]).__name__ == "FilePrompt"
    assert "'hello' in code and another in a file" in found["mcp_django.W005"].msg
    assert "broken.md cannot be read: line 1: unknown name 'x'" in found["mcp_django.E008"].msg
    assert "mcp_django.W005" not in {
        one.id for one in run_checks(tags=["mcp_django"], databases=[])
    }
