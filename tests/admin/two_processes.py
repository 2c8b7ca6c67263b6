"""A second process of the site: it says what it finds after so many seconds of its own clock."""

from __future__ import annotations

import os
import sys

import django
from django.conf import settings


def main(database: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    settings.DATABASES["default"]["NAME"] = database
    django.setup()
    from mcp_django.exposure.decisions import exposed_by
    from mcp_django.exposure.generation import generations
    from mcp_django.exposure.registry import registry

    now = 0.0
    generations.clock = lambda: now
    for line in sys.stdin:
        label, seconds = line.split()
        now += float(seconds)
        found = exposed_by(registry, "default").by_label.get(label)
        print(0 if found is None else found.standard_level.value, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
