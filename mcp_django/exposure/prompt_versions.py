"""The versions of a stored prompt: one more at each save, and none ever changed."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any

from django.db import router, transaction

from mcp_django.exposure.prompt_contents import (
    ArgumentContent,
    BrokenContents,
    Contents,
    MessageContent,
    parse_contents,
)
from mcp_django.models import PromptTemplate, PromptVersion


def newest_version(template: PromptTemplate) -> PromptVersion | None:
    found = PromptVersion.objects.filter(template=template.pk).order_by("-number")
    return found.first()


def add_version(
    template: PromptTemplate, contents: Contents, *, user: Any = None, comment: str = ""
) -> PromptVersion:
    """The next version. Of two saves at once each gets a number of its own."""
    using = router.db_for_write(PromptVersion, instance=template)
    with transaction.atomic(using=using):
        # Whoever comes second waits here.
        PromptTemplate.objects.using(using).select_for_update().get(pk=template.pk)
        # Read with a lock as well: MariaDB would answer from before the wait.
        numbers = PromptVersion.objects.using(using).select_for_update().filter(template=template)
        last = numbers.order_by("-number").values_list("number", flat=True).first()
        return PromptVersion.objects.using(using).create(
            template=template,
            number=(last or 0) + 1,
            created_by=user,
            comment=comment,
            **contents.as_plain(),
        )


def contents_of(version: PromptVersion | None) -> Contents:
    """What a version says. What cannot be read any more is as if it were not there."""
    if version is None:
        return Contents()
    try:
        return parse_contents(version.arguments, version.messages)
    except BrokenContents:
        return Contents()


def difference(before: Contents, after: Contents) -> list[str]:
    """The lines that differ and some around them, as `diff -u` shows them without its header."""
    lines = unified_diff(readable(before), readable(after), lineterm="", n=2)
    return list(lines)[2:]


def readable(contents: Contents) -> list[str]:
    """Contents as lines for people."""
    lines: list[str] = []
    for argument in contents.arguments:
        lines += argument_lines(argument)
    for message in contents.messages:
        lines += message_lines(message)
    return lines


def argument_lines(one: ArgumentContent) -> list[str]:
    facts = [one.type, one.model, "required" if one.required else "optional"]
    lines = [f"argument {one.name}: {', '.join(fact for fact in facts if fact)}"]
    lines += [f"  title: {one.title}"] * bool(one.title)
    lines += [f"  description: {line}" for line in one.description.splitlines()]
    return lines + [f"  choice: {choice}" for choice in one.choices]


def message_lines(one: MessageContent) -> list[str]:
    said = [f"resource {one.resource}"] if one.resource else one.text.splitlines()
    return [f"{one.role}:", *(f"  {line}" for line in said)]
