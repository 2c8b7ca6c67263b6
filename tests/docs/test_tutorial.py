"""The tutorial, run as a reader would: its files written, its commands typed, in its order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.children import start
from tests.docs.pages import ROOT, Block, blocks_of
from tests.transports.live_servers import free_port
from tests.waiting import LONG_PATIENCE

TUTORIAL = ROOT / "docs" / "tutorial.md"
#: The package is installed already, in the environment that runs the tests.
INSTALLING = ("python -m venv", ". .venv/", "python -m pip")
WAIT = """\
for _ in $(seq 300); do
  (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && break
  kill -0 $SERVER && sleep 0.1
done
"""


pytestmark = [pytest.mark.needs("curl", "daphne"), pytest.mark.live, pytest.mark.thorough]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command of the page, what it printed, and what the page shows after it."""

    block: Block
    printed: str
    shown: Block | None

    @property
    def result(self) -> dict:
        return json.loads(self.printed)["result"]


def as_script(block: Block, number: int, *, port: int) -> str:
    """What a block tells the reader to do, as lines of one shell script."""
    if block.path:
        operator = ">>" if "Append to" in block.lead else ">"
        return (
            f'mkdir -p "$(dirname {block.path})"\n'
            f"cat {operator} {block.path} <<'END OF FILE'\n\n{block.text}END OF FILE\n"
        )
    if block.language != "sh" or block.text.startswith(INSTALLING):
        return ""
    text = block.text.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    text = text.replace("createsuperuser", "createsuperuser --noinput")
    if "runserver" in text:
        # Without the reloader it is one process, and the script ends what it has started.
        serving = f"{text.strip()} --noreload 127.0.0.1:{port} > server.log 2>&1 &\n"
        return f"{serving}SERVER=$!\ntrap 'kill $SERVER' EXIT\n{WAIT.format(port=port)}"
    return f"exec > {number}.out\n{text}"


def run(script: str, folder: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key[:6] != "DJANGO"}
    shell = start(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={
            **environment,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DJANGO_SUPERUSER_PASSWORD": "not-a-secret",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = shell.communicate(timeout=LONG_PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        raise
    log = folder / "server.log"
    assert shell.returncode == 0, printed + (log.read_text() if log.exists() else "")


@pytest.fixture(scope="module")
def steps(tmp_path_factory) -> dict[str, Step]:
    """Every call, and every other command that the page shows an answer to."""
    folder = tmp_path_factory.mktemp("tutorial")
    port = free_port()
    page = list(blocks_of(TUTORIAL))
    script = [as_script(block, number, port=port) for number, block in enumerate(page)]
    run("\n".join(script), folder)
    found = {}
    for number, (block, after) in enumerate(zip(page, [*page[1:], None], strict=True)):
        is_answer = after is not None and after.language in ("json", "text") and not after.path
        if block.text.startswith("ask ") or (block.language == "sh" and is_answer):
            printed = (folder / f"{number}.out").read_text()
            found[block.text] = Step(
                block=block, printed=printed, shown=after if is_answer else None
            )
    return found


def test_every_answer_is_the_one_that_the_page_shows(steps):
    assert len(steps) == 5

    for step in steps.values():
        assert step.shown is not None, step.block
        if not step.block.text.startswith("ask "):
            assert step.printed == step.shown.text, step.shown
            continue
        text = step.result["content"][0]["text"]
        if step.shown.language == "json":
            told, shown = json.loads(text), json.loads(step.shown.text)
            assert told.pop("now", "")[:4] >= shown.pop("now", "")[:4]
            assert told == shown, step.shown
        else:
            assert step.result["isError"]
            assert text == " ".join(step.shown.text.split()), step.shown
