"""What a stranger has: the wheel in an empty environment, the tutorial's site, `make demo`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.children import start
from tests.docs.pages import ROOT, blocks_of
from tests.docs.test_tutorial import TUTORIAL, as_script
from tests.transports.live_servers import free_port, wait_for
from tests.waiting import LONG_PATIENCE

pytestmark = [pytest.mark.live]
FLIGHTS = "django://objects/flights.flight"
#: Nothing of this run: no settings, no options of Python or make.
ENVIRON = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}


#: What a site may have had before, and what it writes about its assistants.
TESTS = """
from django.contrib.auth.models import User
from django.test import TestCase

from mcp_django.testing import Client


class AssistantTests(TestCase):
    fixtures = ["orders"]

    def test_they_find_orders(self):
        client = Client(user=User.objects.create_superuser("ada"))

        answer = client.call_tool("find_records", model="shop.order")

        self.assertEqual(len(answer.data["rows"]), 3)
"""


def run(*command: str | Path, cwd: Path, **environ: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**ENVIRON, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONG_PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """The bin folder of an empty environment into which the wheel was installed."""
    folder = tmp_path_factory.mktemp("stranger")
    build = ["-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    run(sys.executable, *build, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    # The pip of this environment, which takes a few seconds less than one of its own.
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
    run(*pip, "--constraint", ROOT / ".ci" / "lock.txt", f"{wheel}[daphne]", cwd=folder)
    return python.parent


def test_the_site_of_the_tutorial_passes_its_checks_and_its_tests(environment, tmp_path):
    blocks = list(blocks_of(TUTORIAL))
    served = next(at for at, block in enumerate(blocks) if "runserver" in block.text)
    script = "".join(
        as_script(block, number, port=0) for number, block in enumerate(blocks[:served])
    )

    script += f"""
cat > shop/tests.py <<'END OF TESTS'{TESTS}END OF TESTS
exec >&2
python manage.py check
python manage.py test
printf '\n@mcp.tool\ndef f(a): ...\n' >> shop/mcp.py
! python manage.py check
! python -c "import mysite.asgi" 2>&1 | tail -n 1
"""
    printed = run(
        *("bash", "-euo", "pipefail", "-c", script),
        cwd=tmp_path,
        PATH=f"{environment}{os.pathsep}{os.environ['PATH']}",
        DJANGO_SUPERUSER_PASSWORD="not-a-secret",
    )

    assert printed.count("no issues (0 silenced)") == 2
    assert "Ran 1 test" in printed
    # A mistake in mcp.py is a line of the checks, and no server starts with it.
    assert "Traceback" not in printed
    assert re.search(r"\(mcp_django\.E005\) .*/shop/mcp\.py, line \d+: a of shop\.mcp\.f", printed)
    assert re.search(r"ImproperlyConfigured: .*/shop/mcp\.py, line \d+: a of shop", printed)
    assert str(environment) in run(
        *(environment / "python", "-c", "import mcp_django; print(mcp_django.__file__)"),
        cwd=tmp_path,
    ).replace("/lib/", "/bin/")


@contextmanager
def demo(state: Path):
    """The address of `make demo`, and the tokens of its users."""
    port = free_port()
    with (state / "log").open("w+") as log:
        process = start(
            ["make", "--no-print-directory", "demo", f"PORT={port}"],
            cwd=ROOT,
            env={**ENVIRON, "DEMO_STATE": str(state / "demo"), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # So that the server that make has started ends with it.
            start_new_session=True,
        )
        try:
            for line in process.stdout:
                if "Serving." in line:
                    break
            else:
                log.seek(0)
                pytest.fail(log.read())
            wait_for(port)
            tokens = json.loads((state / "demo" / "tokens.json").read_text())
            secrets = {user: entry["secret"] for user, entry in tokens.items()}
            yield f"http://127.0.0.1:{port}/mcp", secrets
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(LONG_PATIENCE)
            process.stdout.close()


@pytest.mark.asyncio
async def test_the_official_client_lists_calls_and_hears_of_a_change_in_the_demo(tmp_path):
    with demo(tmp_path) as (address, tokens):
        headers = {"Authorization": f"Bearer {tokens['dispatcher']}"}
        async with (
            asyncio.timeout(LONG_PATIENCE),
            httpx2.AsyncClient(headers=headers, timeout=LONG_PATIENCE) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            tools = {tool.name for tool in (await client.list_tools()).tools}
            arguments = {"model": "flights.flight", "fields": ["number"], "limit": 1}
            page = await client.call_tool("find_records", arguments)
            ((number,),) = json.loads(page.content[0].text)["rows"]
            async with client.listen(resource_subscriptions=[FLIGHTS]) as changes:
                saved = await client.call_tool(
                    "update_record", {"model": "flights.flight", "pk": 1, "values": {"gate": "Z9"}}
                )
                change = await anext(changes)

    assert {"find_records", "update_record"} <= tools
    assert number
    assert not saved.is_error, saved.content
    assert change.uri == FLIGHTS
