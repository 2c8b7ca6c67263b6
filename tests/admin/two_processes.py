"""A second process of the site: it says what it finds, each time it is asked on its input."""

from __future__ import annotations

import os
import sys
import time

import django
from django.conf import settings


def main(database: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    settings.DATABASES["default"]["NAME"] = database
    django.setup()
    from mcp_django.exposure.overrides import exposed_by
    from mcp_django.exposure.registry import registry

    for line in sys.stdin:
        label, wanted = line.split()
        ends = time.monotonic() + 5
        began = time.monotonic()
        while time.monotonic() < ends:
            found = exposed_by(registry, "default").by_label.get(label)
            level = 0 if found is None else found.standard_level.value
            if level == int(wanted):
                break
            time.sleep(0.01)
        print(level, f"{time.monotonic() - began:.3f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
