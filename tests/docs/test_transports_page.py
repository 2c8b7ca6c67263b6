"""The page about transports, typed as a reader would while the site of the examples runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.children import start
from tests.docs.pages import EXAMPLES, ROOT, blocks_of
from tests.transports.live_servers import free_port
from tests.waiting import PATIENCE

PAGE = list(blocks_of(ROOT / "docs" / "topics" / "transports.md"))
SHOWN = [
    (command, answer)
    for command, answer in pairwise(PAGE)
    if command.language == "sh" and answer.language != "sh"
]
SETTINGS = """\
from pathlib import Path

from mysite.settings import *

DATABASES["default"]["NAME"] = Path(__file__).parent / "db.sqlite3"
"""
# Each command would load Django anew.
BEGIN = """\
import django

django.setup()

from django.core.management import call_command

call_command("migrate", verbosity=0)
call_command("createsuperuser", interactive=False, username="ada", email="ada@example.com")
call_command("mcp_token", "create", "ada", "--name", "x")
"""
PING = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'

pytestmark = [pytest.mark.needs("curl", "daphne"), pytest.mark.live, pytest.mark.thorough]


class Site:
    """The site of the examples in a folder of its own, with a database and a user."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        (folder / "settings_here.py").write_text(SETTINGS)
        shutil.copy(ROOT / "manage.py", folder)
        paths = [str(folder), str(EXAMPLES), str(ROOT)]
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings_here",
            "PYTHONPATH": os.pathsep.join(paths),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "DJANGO_SUPERUSER_PASSWORD": "not-a-secret",
        }

    def start(self, *command, cwd=None, **options):
        return start(
            command,
            cwd=cwd or self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )

    def run(self, *command):
        with self.start(*command) as process:
            printed, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, printed
        return printed

    def type(self, text):
        """What a command prints: all of it, or the first event where it goes on and on."""
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")
        if "--no-buffer" not in text:
            return self.run("bash", "-c", text)
        with self.start("bash", "-c", text) as process:
            event = []
            for line in process.stdout:
                if line == "\n" and event:
                    break
                event += [] if line.startswith(":") or line == "\n" else [line]
            os.killpg(process.pid, signal.SIGKILL)
        return "".join(event)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("transports"), free_port())
    printed = site.run(sys.executable, "-c", BEGIN)
    site.environment["TOKEN"] = re.search(r"\bmcp_\w+", printed)[0]
    listen = ["-b", "127.0.0.1", "-p", str(site.port), "mysite.asgi:application"]
    with site.start(sys.executable, "-m", "daphne", *listen, stderr=subprocess.STDOUT) as server:
        while "Listening on TCP" not in (line := server.stdout.readline()):
            assert line, "The server has ended."
        yield site
        server.terminate()
        server.communicate(timeout=PATIENCE)


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[str(one) for one, _ in SHOWN])
def test_every_command_answers_what_the_page_shows(site, command, shown):
    printed = site.type(command.text)

    if shown.language == "json":
        data = printed.rpartition("data: ")[2]
        assert json.loads(data) == json.loads(shown.text)
    else:
        known, _, _ = shown.text.partition("...")
        assert printed.startswith(known)
        assert len(printed) > len(shown.text)


def test_what_the_page_about_stdio_tells_a_desktop_program_starts_the_site(site, tmp_path):
    (block,) = [
        one for one in blocks_of(ROOT / "docs" / "howto" / "stdio.md") if one.language == "json"
    ]
    told = json.loads(block.text)["mcpServers"]["my-shop"]
    paths = {
        "/path/to/shop/.venv/bin/python": sys.executable,
        "/path/to/shop/manage.py": str(site.folder / "manage.py"),
    }
    command = [paths.get(part, part) for part in (told["command"], *told["args"])]

    with site.start(*command, cwd=tmp_path, stdin=subprocess.PIPE) as process:
        printed, _ = process.communicate(PING, timeout=PATIENCE)

    assert json.loads(printed) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert process.returncode == 0


def test_every_transport_is_tried():
    transports = {line for line in PAGE[0].page.read_text().splitlines() if line[:3] == "## "}

    assert len(SHOWN) == 4
    assert transports == {"## Streamable HTTP", "## WSGI view", "## HTTP+SSE", "## stdio"}
