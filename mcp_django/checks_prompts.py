"""Mistakes in prompts, told before the first call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning
from django.db import Error as DatabaseFailure
from django.db import router

from mcp_django.exposure.registry import registry
from mcp_django.models import PromptTemplate


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


def check_stored_prompts(
    *, databases: Iterable[str] | None = None, **kwargs: Any
) -> Iterator[CheckMessage]:
    """W005. Asks the database, so it runs on migrate and on check --database only."""
    for name in stored_names(databases or ()):
        if name in registry.prompts:
            kind = "code" if name in registry.code_prompts else "a file"
            yield Warning(
                f"There is a prompt called {name!r} in {kind} and another in the database. "
                f"The one in {kind} is used.",
                hint="Rename the one in the database: it is listed in the admin under Prompt "
                "templates.",
                id="mcp_django.W005",
            )


def stored_names(databases: Iterable[str]) -> list[str]:
    using = router.db_for_write(PromptTemplate)
    if using not in databases:
        return []
    try:
        return list(PromptTemplate.objects.using(using).values_list("name", flat=True))
    except DatabaseFailure:  # no table yet: migrate checks before it migrates
        return []
