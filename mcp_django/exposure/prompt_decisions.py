"""What staff decided about prompts of code and of files: whether and how they are there."""

from __future__ import annotations

from dataclasses import replace

from mcp_django.exposure.decisions import PromptDecision
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.prompts import Prompt
from mcp_django.protocol.results import PromptDefinition


def exists(rights: Rights, prompt: Prompt) -> bool:
    """Whether this caller may know of the prompt: what staff say, then what the prompt says."""
    return rights.is_left(decision_about(rights, prompt)) and prompt.exists_for(rights)


def definition_of(rights: Rights, prompt: Prompt) -> PromptDefinition:
    """What clients are told of it, in the words of staff where they wrote some."""
    decision, definition = decision_about(rights, prompt), prompt.definition
    if decision is None:
        return definition
    return replace(
        definition,
        title=decision.title or definition.title,
        description=decision.description or definition.description,
    )


def decision_about(rights: Rights, prompt: Prompt) -> PromptDecision | None:
    # A stored prompt that has taken the name since decides for itself.
    is_registered = prompt.name in rights.registry.prompts
    return rights.exposed.decisions.prompts.get(prompt.name) if is_registered else None
