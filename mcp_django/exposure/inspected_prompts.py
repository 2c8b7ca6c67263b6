"""Which prompts a caller is offered, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_django.exposure.decisions import PromptDecision
from mcp_django.exposure.inspected_tools import Inspected, why_not
from mcp_django.exposure.inspection import for_groups
from mcp_django.exposure.lookers import OwnRights
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.prompt_decisions import decision_about, definition_of, exists
from mcp_django.exposure.prompts import Prompt
from mcp_django.exposure.stored_prompts import StoredPrompt, all_prompts
from mcp_django.models import PromptTemplate
from mcp_django.principal import READ

OFF = "Staff switched it off."


def inspect_prompts(rights: Rights, looker: OwnRights) -> list[Inspected]:
    """The prompts that the looker is offered too, or reads in the admin, by name."""
    rows = visible_rows(looker)
    known = {prompt.name: prompt for prompt in all_prompts(rights)}
    found = [
        inspected(rights, looker, prompt)
        for name, prompt in known.items()
        if prompt.exists_for(looker) or (name in rows and isinstance(prompt, StoredPrompt))
    ]
    found += [left_out(row) for name, row in rows.items() if name not in known]
    return sorted(found, key=lambda one: one.name)


def visible_rows(looker: OwnRights) -> dict[str, PromptTemplate]:
    if not looker.may_view(PromptTemplate):
        return {}
    rows = looker.rows(PromptTemplate).filter(server=looker.principal.server)
    return {row.name: row for row in rows}


def inspected(rights: Rights, looker: OwnRights, prompt: Prompt) -> Inspected:
    definition, is_there = definition_of(rights, prompt), exists(rights, prompt)
    return Inspected(
        name=prompt.name,
        title=definition.title,
        description=definition.description,
        is_there=is_there,
        reasons=() if is_there else tuple(why_no_prompt(rights, looker, prompt)),
    )


def why_no_prompt(rights: Rights, looker: OwnRights, prompt: Prompt) -> Iterator[str]:
    """Every reason, each of which would do."""
    if isinstance(prompt, StoredPrompt):
        groups = prompt.groups
        if not rights.has_scopes(frozenset({READ})):
            yield f"The credential lacks the scope {READ}."
    else:
        decision = decision_about(rights, prompt) or PromptDecision()
        groups = decision.groups
        if decision.enabled is False:
            yield OFF
        if not prompt.exists_for(rights):
            yield from why_not(rights, prompt)
    if not rights.is_member(groups):
        yield for_groups(groups, looker)


def left_out(row: PromptTemplate) -> Inspected:
    """A row of which no prompt was made, for anybody."""
    reason = "It cannot be read: see the log." if row.enabled else OFF
    return Inspected(
        name=row.name,
        title=row.title,
        description=row.description,
        is_there=False,
        reasons=(reason,),
    )
