"""The pages that follow a call and a change by file names, compared with what runs."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.testing import Client
from mcp_django.transports.streamable_http import MCPApplication
from tests.docs.pages import ROOT

PACKAGE = ROOT / "mcp_django"
TOPICS = ROOT / "docs" / "topics"
CALL, CHANGE = "how-a-call-travels.md", "how-a-change-travels.md"
#: A call of the test client begins behind the router of `asgi.py`.
IN_FRONT = ["asgi.py"]
#: It writes the record in the thread of the test: see `mcp_django.testing`.
RECORDING = re.compile(r"audit/\w+\.py")


def files_of(page: str) -> list[str]:
    """What the tables of a page name in their first columns, in order."""
    cells = re.findall(r"^\|([^|]+)\|", (TOPICS / page).read_text(), re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([\w/]+\.py)`", cell)]


@contextmanager
def profiled(note: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    """In this thread, and in those that start meanwhile."""
    earlier, earlier_threads = sys.getprofile(), threading.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(earlier)
        threading.setprofile(earlier_threads)


@pytest.fixture
def files_of_a_call(staff):
    """What a call executes whose token, decisions and query are known from earlier calls."""
    runs = [[]]
    prefix = f"{PACKAGE}/"

    def note(frame, event, argument):
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(prefix) or path in runs[-1]:
            return
        # Threads of the package do other work meanwhile, such as writing when a token was used.
        if not threading.current_thread().name.startswith("mcp-"):
            runs[-1].append(path)

    async def application(scope, receive, send):
        runs.append([])
        await MCPApplication.as_asgi()(scope, receive, send)
        runs.append([])

    client = Client(user=staff, revision=LATEST_LEGACY, application=application, record=True)
    filters = {"number": "A-1", "customer__country": "FR"}
    with profiled(note):
        for _ in range(6):
            answer = client.call_tool(
                "find_records", model="shop.order", filters=filters, order_by=["-placed_at"]
            )
    assert not answer.is_error, answer.text
    # On a busy machine a second may pass between two calls, and then nothing is cached.
    shortest = min(runs[1::2], key=len)
    names = [path.removeprefix(prefix) for path in shortest]
    return [name for name in names if not name.startswith("testing/")]


@pytest.mark.parametrize("page", [CALL, CHANGE])
def test_every_file_on_the_way_exists(page):
    files = files_of(page)

    assert len(files) > 20
    assert [name for name in files if not (PACKAGE / name).exists()] == []


@pytest.mark.django_db
def test_a_call_executes_the_files_of_the_page_in_their_order(files_of_a_call):
    named, text = files_of(CALL), (TOPICS / CALL).read_text()
    figure = re.search(r"^\| Files of `mcp_django` that the call executes \| (\d+) \|", text, re.M)

    executed = [name for name in files_of_a_call if not RECORDING.fullmatch(name)]
    assert executed == [
        name for name in named if name not in IN_FRONT and not RECORDING.fullmatch(name)
    ]
    assert int(figure[1]) == len(named)
