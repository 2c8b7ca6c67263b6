"""Stored prompts for tests, made as the admin makes them."""

from __future__ import annotations

from typing import Any

from mcp_django.exposure.prompts.contents import Contents, parse_contents
from mcp_django.exposure.prompts.stored import add_version
from mcp_django.models import PromptTemplate

ORDER = {"name": "order", "type": "object", "model": "shop.order", "required": True}
TONE = {"name": "tone", "type": "choice", "choices": ["warm", "firm"]}


def contents_of(*messages: Any, arguments: Any = ()) -> Contents:
    """Contents of these messages; a text alone is one of the user."""
    made = [one if isinstance(one, dict) else {"text": one} for one in messages]
    return parse_contents(list(arguments), made)


def make_prompt(name: str, *messages: Any, arguments: Any = (), **fields: Any) -> PromptTemplate:
    groups = fields.pop("groups", ())
    template = PromptTemplate.objects.create(name=name, **fields)
    template.groups.set(groups)
    add_version(template, contents_of(*messages, arguments=arguments))
    return template


def say(template: PromptTemplate, *messages: Any, arguments: Any = ()) -> None:
    """Another version."""
    add_version(template, contents_of(*messages, arguments=arguments))
