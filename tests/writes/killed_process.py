"""A process of the site that makes one call, and stops in the middle of it until it is killed."""

from __future__ import annotations

import json
import os
import sys
from itertools import count

import django
from django.conf import settings


def main(database: str, token: str, point: str, tool: str, arguments: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    settings.DATABASES["default"]["NAME"] = database
    settings.ROOT_URLCONF = "tests.workshop.urls"
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": ["workshop"]}
    django.setup()
    from django.db.models import signals

    from tests.clients import CheckedClient
    from tests.workshop.exposed import exposed

    signal, label, nth = point.split()
    times = count(1)

    def stop(sender, **kwargs):
        if sender._meta.label_lower == label and next(times) == int(nth):
            print("here", flush=True)
            sys.stdin.read()

    getattr(signals, signal).connect(stop)
    with exposed():
        answer = CheckedClient(token=token).call_tool(tool, **json.loads(arguments))
    print(f"It went on to its end: {answer.text}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
