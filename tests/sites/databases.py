"""Models in two databases, and reads of the first that go to two replicas in turn."""

from __future__ import annotations

from tests.databases import database
from tests.settings import *

DATABASES = {
    "default": database(),
    "left": {**database(), "TEST": {"MIRROR": "default"}},
    "right": {**database(), "TEST": {"MIRROR": "default"}},
    "archive": database("mcp_django_archive"),
}
DATABASE_ROUTERS = ["tests.sites.routers.Turns"]
