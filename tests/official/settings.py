"""The flight desk as it is, but for two things that only tests need."""

from __future__ import annotations

from demo_project.settings import *  # noqa: F403
from demo_project.settings import MCP_DJANGO

#: The endpoint as a view, for WSGI. Under ASGI the router answers first.
ROOT_URLCONF = "tests.official.urls"
#: A walk through all airports is hundreds of calls.
MCP_DJANGO = {**MCP_DJANGO, "CALLS_PER_MINUTE": 1_000_000}
