"""The system check of this app."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error

from mcp_django.checks import a_check
from mcp_django.oauth.setup import missing_steps


@a_check()
def check_setup(**kwargs: Any) -> Iterator[CheckMessage]:
    """mcp_django_oauth.E001: people cannot sign in, or not safely."""
    for step in missing_steps():
        yield Error(step.problem, hint=step.solution, id="mcp_django_oauth.E001")
