from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from django.core.management import CommandError, call_command

from mcp_django.models import CallRecord, PersonalToken
from mcp_django.testing import Client
from mcp_django.transports import shutdown, stdio
from mcp_django.transports.stdio import Pipes
from tests.management.processes import Process
from tests.spec import requirement
from tests.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.live, pytest.mark.thorough]


@pytest.fixture
def refused(monkeypatch):
    """What the command says of its arguments. It must not touch the streams of the tests."""

    def run(*arguments, token=""):
        monkeypatch.setenv("MCP_TOKEN", token)
        monkeypatch.setattr("mcp_django.management.commands.mcp_stdio.take_streams", bool)
        with pytest.raises(CommandError) as error:
            call_command("mcp_stdio", *arguments)
        return str(error.value)

    return run


@pytest.mark.parametrize(
    ("arguments", "token", "sentence"),
    [
        ([], "", "Say who the client acts as, by --user or by MCP_TOKEN."),
        (["--user", "staff"], "mcp_x", "--user and MCP_TOKEN both say who the client acts as."),
        (["--scope", "mcp:read"], "mcp_x", "A token has its own scopes"),
        (["--user", "nobody"], "", "There is no active user 'nobody'."),
        (["--user", "gone"], "", "There is no active user 'gone'."),
        (["--user", "staff", "--scope", "mcp:reed"], "", "unknown scope 'mcp:reed'"),
        ([], "mcp_nonsense", "MCP_TOKEN is not valid."),
        ([], "something else", "MCP_TOKEN is not valid."),
    ],
)
def test_a_mistake_is_told_in_a_sentence(make_user, refused, arguments, token, sentence):
    make_user("staff", is_staff=True)
    make_user("gone", is_staff=True, is_active=False)

    assert sentence in refused(*arguments, token=token)


def test_a_site_without_authenticators_knows_no_token(refused, settings):
    settings.MCP_DJANGO = {"AUTHENTICATORS": []}

    assert "AUTHENTICATORS" in refused(token="mcp_x")


@pytest.fixture
def say(monkeypatch):
    """What the command answers, in this process, to a client that sends one line and leaves."""

    # On a busy machine half a second may be too short for a call, or to write its answer.
    monkeypatch.setattr(stdio, "GRACE", PATIENCE)
    monkeypatch.setattr(stdio, "FAREWELL", PATIENCE)

    def say(line, *arguments):
        (theirs, own), (reading, writing) = os.pipe(), os.pipe()
        taken = Pipes(input=theirs, output=writing)
        monkeypatch.setattr("mcp_django.management.commands.mcp_stdio.take_streams", lambda: taken)
        os.write(own, line + b"\n")
        os.close(own)
        with ThreadPoolExecutor(1) as threads, open(reading, "rb") as answers:
            # More than the pipe holds.
            answer = threads.submit(answers.read)
            try:
                call_command("mcp_stdio", *arguments)
            finally:
                os.close(theirs)
                os.close(writing)
            return answer.result()

    return say


@pytest.mark.parametrize(
    ("backend", "lines"),
    [
        (None, 1),
        ("channels.layers.InMemoryChannelLayer", 1),
        ("channels_redis.pubsub.RedisPubSubChannelLayer", 0),
    ],
)
def test_who_hears_of_no_other_process_is_told_once(staff, say, settings, capsys, backend, lines):
    settings.CHANNEL_LAYERS = {} if backend is None else {"default": {"BACKEND": backend}}

    say(b"{", "--user", "staff")

    told = capsys.readouterr().err.splitlines()
    assert sum("changes of other processes" in line for line in told) == lines
    assert all("CHANNEL_LAYERS" in line for line in told if "other processes" in line)


def test_a_refusal_leaves_standard_output_empty(staff):
    with Process("--user", "nobody") as process:
        out, errors = process.finish()

    assert (process.popen.returncode, out) == (1, b"")
    assert "CommandError: There is no active user 'nobody'." in errors


@requirement("stdio:messages-only")
def test_nothing_but_messages_reaches_standard_output_whatever_prints(staff):
    with Process("--user", "staff") as process:
        said = process.call("chatter")
        out, errors = process.finish()

    assert said["content"][0]["text"] == "said"
    assert (process.popen.returncode, out) == (0, b"")
    for printed in (
        *("Configured.", "Loaded.", "Discovered.", "printed", "flushed"),
        *("from the first stdout", "to the descriptor", "from a child"),
    ):
        assert printed in errors


@requirement("stdio:environment")
def test_a_token_comes_from_the_environment_and_tools_find_neither_it_nor_the_input(staff):
    token, secret = PersonalToken.create(user=staff, name="desktop")
    with Process(MCP_TOKEN=secret) as process:
        found = process.call("credentials")
        user = process.call("echo", text="x")["structuredContent"]["user"]
        token.revoke()
        # It is noticed within a second, and calls are counted.
        wait_until(lambda: "structuredContent" not in process.call("echo", text="x"), pause=0.2)
        said = process.call("echo", text="x")

    assert found["content"][0]["text"] == "False '' False ''\n"
    assert user == "staff"
    assert said["code"] == -32600


def test_scopes_limit_what_the_user_may_do(make_user, say):
    make_user("ada", "view_order", "change_order", is_staff=True)
    message = Client().message("tools/list")
    tools = {}
    for scopes in (["--scope", "mcp:read"], []):
        answer = msgspec.json.decode(say(msgspec.json.encode(message), "--user", "ada", *scopes))
        tools[bool(scopes)] = {one["name"] for one in answer["result"]["tools"]}

    assert tools[True] < tools[False]


def test_the_end_of_input_ends_it_although_a_tool_runs_on(staff):
    with Process("--user", "staff") as process:
        process.call("echo", text="x")
        process.ask("tools/call", name="linger", arguments={})
        while process.popen.stderr.readline() != b"lingering\n":
            continue
        out, errors = process.finish()

    assert (process.popen.returncode, out) == (0, b"")
    assert "A tool still ran when the process ended." in errors
    # The tool takes ten minutes. Clients kill after two seconds.
    assert stdio.GRACE + stdio.FAREWELL + shutdown.PATIENCE < 2
    assert CallRecord.objects.filter(target="echo").count() == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals.")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(staff, number):
    with Process("--user", "staff") as process:
        process.ask("subscriptions/listen", notifications={"toolsListChanged": True})
        process.message()
        process.popen.send_signal(number)
        answer, cancelled = process.message(), process.message()
        process.popen.wait(timeout=PATIENCE)
        _, errors = process.finish()

    assert process.popen.returncode == 0
    assert answer["id"] == 1
    assert cancelled["method"] == "notifications/cancelled"
    assert "Traceback" not in errors


def test_a_reader_that_is_killed_ends_it(staff):
    with Process("--user", "staff") as process:
        process.call("echo", text="x")
        process.popen.stdout.close()
        process.ask("tools/list")
        process.popen.wait(timeout=PATIENCE)
        process.popen.stdout = None
        _, errors = process.finish()

    assert process.popen.returncode == 0
    assert "Traceback" not in errors
