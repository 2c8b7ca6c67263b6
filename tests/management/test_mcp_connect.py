from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.core.management import CommandError

from mcp_django.management.commands.mcp_connect import CARDS, INPUT
from tests.docs.pages import ROOT

COMMAND = "mcp_connect"
LOCAL, PUBLIC = "http://127.0.0.1:8000/mcp", "https://shop.example.com/mcp"
CLIENTS = ROOT / "docs" / "howto" / "clients"


@pytest.fixture
def project(tmp_path, monkeypatch, configure, only_tokens):
    """The directory of a project whose people connect with tokens."""
    configure(NAME="My shop", PUBLIC_URL="https://shop.example.com")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def on_page(text: str, page: Path) -> bool:
    """Whether a page shows it, however it breaks the lines of JSON."""
    return "".join(text.split()) in "".join(page.read_text().split())


@pytest.mark.parametrize(
    ("client", "page"),
    [
        ("claude-code", "claude-code.md"),
        ("vscode", "vs-code.md"),
        ("mcp-remote", "mcp-remote.md"),
        ("other", "../connect.md"),
        ("other", "../../../README.md"),
    ],
)
def test_the_pages_show_what_the_command_says_with_a_token(run, project, client, page):
    assert on_page(run(client, "--url", LOCAL).out, CLIENTS / page)


@pytest.mark.needs("oauth")
@pytest.mark.parametrize(
    ("client", "page"),
    [
        ("claude-code", "claude-code.md"),
        ("cursor", "cursor.md"),
        ("mcp-remote", "mcp-remote.md"),
        ("chatgpt", "chatgpt.md"),
        ("claude", "claude-ai.md"),
    ],
)
def test_the_pages_show_what_the_command_says_where_people_sign_in(run, configure, client, page):
    configure(NAME="My shop", PUBLIC_URL="https://shop.example.com", REGISTRATION="cimd+dcr")

    said = run(client)

    assert PUBLIC in said.out
    assert on_page(said.out, CLIENTS / page)
    assert "TOKEN" not in said.out


@pytest.mark.parametrize("client", sorted(CARDS.keys() - {"claude", "chatgpt"}))
def test_every_client_gets_the_address_and_a_step(run, project, client):
    out, steps = run(client)

    assert PUBLIC in out + steps
    assert len(steps) > 20


@pytest.mark.needs("oauth")
def test_clients_that_register_themselves_sign_in(run, configure):
    configure(NAME="My shop", PUBLIC_URL="https://shop.example.com", REGISTRATION="cimd+dcr")

    assert run("codex").out == f"codex mcp add my-shop --url {PUBLIC}\n"
    assert "TOKEN" not in run("claude-desktop").out


def test_without_signing_in_a_client_without_a_field_for_a_token_gets_a_program(run, project):
    assert '"mcp-remote"' in run("claude-desktop").out
    assert "--bearer-token-env-var MCP_TOKEN" in run("codex").out


MISTAKES = [
    (["vscode"], {"PUBLIC_URL": ""}, "--url http://127.0.0.1:8000/mcp"),
    (["vscode", "--url", "shop.example.com"], {}, "Write the address as clients do"),
    (["vscode", "--url", "https://ada:secret@shop.example.com/mcp"], {}, "Write the address"),
    (["chatgpt"], {}, "see manage.py mcp_oauth"),
    (["cursor", "--write"], {}, "knows the files of claude-code and vscode only"),
    (["kursor"], {}, "invalid choice: 'kursor'"),
]


@pytest.mark.parametrize(("arguments", "options", "sentence"), MISTAKES, ids=str)
def test_a_mistake_is_told_in_a_sentence(run, project, configure, arguments, options, sentence):
    configure(**options)

    with pytest.raises(CommandError, match=re.escape(sentence)):
        run(*arguments)

    assert [*project.iterdir()] == []


# Files

SERVER = {"type": "http", "url": PUBLIC}
CLAUDE = {**SERVER, "headers": {"Authorization": "Bearer ${MCP_TOKEN}"}}
CODE = {**SERVER, "headers": {"Authorization": "Bearer ${input:mcp-token}"}}
OTHER = {"command": "ünicode"}
#: The client, its file, what is in it already, and what is in it afterwards.
WRITTEN = [
    ("claude-code", ".mcp.json", None, {"mcpServers": {"my-shop": CLAUDE}}),
    (
        "claude-code",
        ".mcp.json",
        {"more": [1], "mcpServers": {"other": OTHER}},
        {"more": [1], "mcpServers": {"other": OTHER, "my-shop": CLAUDE}},
    ),
    (
        "vscode",
        ".vscode/mcp.json",
        None,
        {"servers": {"my-shop": CODE}, "inputs": [INPUT]},
    ),
    (
        "vscode",
        ".vscode/mcp.json",
        {"inputs": [{"id": "own"}], "servers": {"other": OTHER}},
        {"inputs": [{"id": "own"}, INPUT], "servers": {"other": OTHER, "my-shop": CODE}},
    ),
    (
        "vscode",
        ".vscode/mcp.json",
        {"inputs": [{"id": "mcp-token"}]},
        {"inputs": [{"id": "mcp-token"}], "servers": {"my-shop": CODE}},
    ),
]


@pytest.mark.parametrize(("client", "name", "before", "after"), WRITTEN)
def test_a_file_gets_the_server_without_a_token_and_keeps_the_rest(
    run, project, client, name, before, after
):
    file = project / name
    if before is not None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(before))

    said = run(client, "--write").out
    # Once more: it is there already.
    run(client, "--write")

    assert json.loads(file.read_text()) == after
    assert f"{name} has my-shop now." in said
    assert ("MCP_TOKEN" in said) is (client == "claude-code")
    assert "in place of a token" in said


@pytest.mark.needs("oauth")
def test_a_file_for_people_who_sign_in_has_no_word_of_tokens(run, project, configure):
    configure(AUTHENTICATORS=None)

    run("claude-code", "--write")
    run("vscode", "--write")

    assert json.loads(Path(".mcp.json").read_text()) == {"mcpServers": {"my-shop": SERVER}}
    assert json.loads(Path(".vscode/mcp.json").read_text()) == {"servers": {"my-shop": SERVER}}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"// my servers\n{}", "Comments are no JSON"),
        (b"\xff", "is no JSON"),
        (b"", "is no JSON"),
        pytest.param(b"[" * 100_000, "is no JSON", id="deep"),
        (b"[]", "is no JSON of the expected form"),
        (b'{"servers": []}', "is no JSON of the expected form"),
        (b'{"servers": {}, "inputs": {"id": 1}}', "is no JSON of the expected form"),
        (b'{"servers": {"a": "\\ud800"}}', "is no JSON of the expected form"),
        (b'{"servers": {"my-shop": {"url": "x"}}}', "has another my-shop"),
    ],
)
def test_a_file_that_cannot_take_it_stays_as_it_is(run, project, content, sentence):
    file = project / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes(content)

    with pytest.raises(CommandError, match=sentence):
        run("vscode", "--write")

    assert file.read_bytes() == content


def test_a_file_that_is_no_file_is_told_in_a_sentence(run, project):
    (project / ".mcp.json").mkdir()

    with pytest.raises(CommandError, match="cannot be written"):
        run("claude-code", "--write")
