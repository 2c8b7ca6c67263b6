"""The flight desk as it is, but for what only tests need."""

from __future__ import annotations

from demo_project.settings import *  # noqa: F403
from demo_project.settings import INSTALLED_APPS, MCP_DJANGO

#: Otherwise Django asks SQLite how to write down each query.
DEBUG = False
#: The endpoint as a view, for WSGI. Under ASGI the router answers first.
ROOT_URLCONF = "tests.official.urls"
#: A walk through all airports is hundreds of calls.
LIMITS = ("CALLS_PER_MINUTE", "COMPLETIONS_PER_MINUTE", "FAILURES_PER_MINUTE")
MCP_DJANGO = {**MCP_DJANGO, **dict.fromkeys(LIMITS, 1_000_000)}
#: Tools that ask.
INSTALLED_APPS = [*INSTALLED_APPS, "tests.official"]
