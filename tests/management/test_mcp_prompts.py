from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError

from mcp_django.exposure.prompts.documents import document_of
from mcp_django.models import PromptTemplate
from tests.exposure.prompts.test_documents import HELLO
from tests.exposure.stored import ORDER, TONE, make_prompt

pytestmark = pytest.mark.django_db
COMMAND = "mcp_prompts"


def test_prompts_go_out_to_files_and_come_in_again(run, tmp_path):
    late = make_prompt(
        "late",
        "Draft a {{ tone }} mail about {{ order }}.",
        {"role": "assistant", "resource": "django://site"},
        arguments=[ORDER, TONE],
        title=r"Late, and not a NUL: \u0000",
        description="For late orders.",
        enabled=False,
        groups=[Group.objects.create(name="Support")],
    )
    make_prompt("hello", "Hi.")
    make_prompt("elsewhere", "Hi.", server="other")
    document, folder = document_of(late), tmp_path / "a" / "b"

    written = run("export", folder).out.splitlines()

    assert written == [str(folder / "hello.json"), str(folder / "late.json")]
    assert json.loads((folder / "late.json").read_text()) == document
    assert document["enabled"] is False
    assert run("import", folder).out == "hello: as it was\nlate: as it was\n"
    assert late.versions.count() == 1
    PromptTemplate.objects.all().delete()
    assert run("import", folder).out == "hello: new\nlate: new\n"
    made = PromptTemplate.objects.get(name="late")
    assert document_of(made) == document
    assert made.versions.get().comment == "Imported."


def test_a_dry_run_says_what_would_be_done_and_does_nothing(run, tmp_path):
    template = make_prompt("hello", "Ho.")
    (tmp_path / "hello.json").write_text(json.dumps([HELLO, {**HELLO, "name": "new"}]))

    said = run("import", tmp_path, "--dry-run").out.splitlines()

    assert said == ["hello: changed", "new: new", "Nothing was changed: this was a dry run."]
    assert template.versions.count() == 1
    assert PromptTemplate.objects.count() == 1


def test_one_broken_file_and_nothing_is_imported(run, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(HELLO))
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.json").write_text(json.dumps({**HELLO, "name": "c", "messages": []}))
    (tmp_path / "d.json").mkdir()

    with pytest.raises(CommandError) as refused:
        run("import", tmp_path)

    broken, folder, empty, nothing = str(refused.value).splitlines()
    assert broken.startswith("b.json: This is not JSON")
    assert folder.startswith("d.json: ")
    assert empty == "'c': messages: write at least one"
    assert nothing == "Nothing was changed."
    assert not PromptTemplate.objects.exists()


def test_a_directory_without_files_or_that_cannot_be_is_an_error(run, tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(CommandError, match="There are no files"):
        run("import", tmp_path)
    with pytest.raises(CommandError, match="Cannot write"):
        run("export", tmp_path / "file")
