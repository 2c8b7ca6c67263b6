"""Mistakes in prompts, told before the first call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from mcp_django.exposure.registry import registry


def check_prompts(**kwargs: Any) -> Iterator[CheckMessage]:
    """E008, W005."""
    if registry.prompt_files is None:
        return
    found = registry.prompt_files.read()
    for path, sentence in found.problems.items():
        yield Error(
            f"The prompt {path} cannot be read: {sentence.rstrip('.')}.",
            hint="Correct the file, or give it another ending than .md. Nobody gets it meanwhile.",
            id="mcp_django.E008",
        )
    for name in sorted(found.prompts.keys() & registry.code_prompts.keys()):
        yield Warning(
            f"There is a prompt called {name!r} in code and another in a file. "
            "The one in code is used.",
            hint=f'Rename the file, or the function: @mcp.prompt(name="my_{name}").',
            id="mcp_django.W005",
        )
