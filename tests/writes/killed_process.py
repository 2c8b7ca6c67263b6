"""A process of the site that makes calls, each in a fork that stops in the middle of it until it
is killed. Django is loaded once; no fork has a connection or a thread of another.

Reads calls and writes what became of them, a line each.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from itertools import count

import django
from django.conf import settings


def main(database: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    settings.DATABASES["default"]["NAME"] = database
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": ["workshop"]}
    django.setup()
    import_module(settings.ROOT_URLCONF)
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                call(*json.loads(line))
            finally:
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def call(token: str, point: str, tool: str, arguments: dict[str, object]) -> None:
    from django.db.models import signals

    from mcp_django.testing import Client
    from tests.workshop.exposed import exposed

    signal, label, nth = point.split()
    times = count(1)

    def stop(sender, **kwargs):
        if sender._meta.label_lower == label and next(times) == int(nth):
            print("here", os.getpid(), flush=True)
            # Nobody says anything now. It ends with those who started it.
            os.read(sys.stdin.fileno(), 1)

    getattr(signals, signal).connect(stop)
    with exposed():
        answer = Client(token=token).call_tool(tool, **arguments)
    print(f"It went on to its end: {answer.text}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
