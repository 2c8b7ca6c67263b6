"""Prompts that staff wrote, as rows: read when something changed, and kept in between."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import Error, router, transaction
from django.db.models import OuterRef, Subquery

from mcp_django.context import CallContext
from mcp_django.exposure.generation import Mark, mark
from mcp_django.exposure.prompt_contents import (
    Body,
    BrokenContents,
    compile_contents,
    empty_values,
    parse_contents,
)
from mcp_django.exposure.prompt_objects import complete_object, object_of
from mcp_django.exposure.prompt_parts import Values, rendered
from mcp_django.exposure.prompts import Prompt
from mcp_django.models import PromptTemplate, PromptVersion
from mcp_django.principal import READ
from mcp_django.protocol.results import PromptDefinition, PromptResult

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights

logger = logging.getLogger("mcp_django")


class StoredPrompt:
    """A row, with what its newest version says."""

    def __init__(self, row: PromptTemplate, body: Body, *, groups: frozenset[Any]) -> None:
        self.name = row.name
        self.body = body
        self.groups = groups
        self.definition = PromptDefinition(
            name=row.name,
            title=row.title,
            description=row.description,
            arguments=body.arguments.definitions,
        )

    def __repr__(self) -> str:
        return f"<StoredPrompt {self.name}>"

    def exists_for(self, rights: Rights) -> bool:
        # Whoever may call this server: all that a prompt shows beyond its own words is read with
        # the rights of the caller.
        if not rights.has_scopes(frozenset({READ})):
            return False
        return rights.is_member(self.groups)

    def get(
        self, context: CallContext, rights: Rights, arguments: Mapping[str, str]
    ) -> PromptResult:
        """Its messages; objects and resources read with the rights of the caller.

        Raises ToolError.
        """
        read = self.body.arguments.read(arguments)
        names = {**empty_values(self.body.contents), **read}
        texts = {name: arguments[name] for name in read}
        for name, label in self.body.contents.models.items():
            if name in read:
                found = object_of(rights, label, read[name], argument=name)
                names[name], texts[name] = found, found.read("pk")
        values = Values(names=names, texts=texts)
        messages = rendered(context, rights, self.body.parts, values, prompt=self.name)
        return PromptResult(messages=messages, description=self.definition.description)

    def complete(
        self, rights: Rights, argument: str, value: str, *, given: Mapping[str, str]
    ) -> list[str] | None:
        label = self.body.contents.models.get(argument)
        if label is not None:
            return complete_object(rights, label, value)
        return self.body.arguments.complete(rights.request, argument, value)


# What there is


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What was read, and the mark under which it is good."""

    mark: Mark
    prompts: Mapping[str, StoredPrompt]
    #: By version, which never changes. None: no prompt can be made of it.
    bodies: Mapping[Any, Body | None]


class StoredPrompts:
    """The enabled prompts of each server, by name. One that is broken is left out."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}
        self._lock = threading.Lock()

    def read(self, server: str) -> Mapping[str, StoredPrompt]:
        """Without a query while nothing has changed."""
        # Before the rows: what changes while they are read has another mark.
        now = mark(server)
        kept = self._kept.get(server)
        if kept is None or kept.mark != now:
            with self._lock:
                kept = self._kept.get(server)
                if kept is None or kept.mark != now:
                    kept = self._load(server, now, before=kept)
        return kept.prompts

    def _load(self, server: str, now: Mark, *, before: Kept | None) -> Kept:
        before = before or Kept(mark=now, prompts={}, bodies={})
        try:
            rows = rows_of(server)
        except Error:
            # Not migrated, or the database is gone: what is known goes on, and nothing is kept.
            logger.warning("Stored prompts cannot be read.", exc_info=True)
            return before
        bodies = {
            version.pk: before.bodies[version.pk]
            if version.pk in before.bodies
            else usable_body(version)
            for version, _ in rows
        }
        found = {
            version.template.name: StoredPrompt(version.template, body, groups=groups)
            for version, groups in rows
            if (body := bodies[version.pk]) is not None
        }
        kept = self._kept[server] = Kept(mark=now, prompts=found, bodies=bodies)
        return kept


stored_prompts = StoredPrompts()


def usable_body(version: PromptVersion) -> Body | None:
    try:
        return body_of(version)
    except BrokenContents as error:
        logger.error("The stored prompt %s is left out: %s", version, error)
        return None


def body_of(version: PromptVersion) -> Body:
    """Raises BrokenContents."""
    return compile_contents(parse_contents(version.arguments, version.messages))


def rows_of(server: str) -> list[tuple[PromptVersion, frozenset[Any]]]:
    """The newest version of each enabled prompt, and its groups. Two queries."""
    # A replica could lag behind the generation that says that something changed.
    using = router.db_for_write(PromptTemplate)
    newest = (
        PromptVersion.objects.filter(template=OuterRef("template"))
        .order_by("-number")
        .values("number")[:1]
    )
    versions = (
        PromptVersion.objects.using(using)
        .filter(template__server=server, template__enabled=True, number=Subquery(newest))
        .select_related("template")
        .order_by("template__name")
    )
    between: Any = PromptTemplate.groups.through
    pairs = between.objects.using(using).filter(prompttemplate__server=server)
    # A missing table must not break the transaction around the call.
    is_inside = transaction.get_connection(using).in_atomic_block
    with transaction.atomic(using=using) if is_inside else nullcontext():
        groups: dict[Any, set[Any]] = {}
        for template, group in pairs.values_list("prompttemplate_id", "group_id"):
            groups.setdefault(template, set()).add(group)
        return [(one, frozenset(groups.get(one.template_id, ()))) for one in versions]


def all_prompts(rights: Rights) -> Iterator[Prompt]:
    """Every prompt of this server, whoever may get it: of code, of files, and then of rows."""
    registered = rights.registry.prompts
    yield from registered.values()
    for name, prompt in stored_prompts.read(rights.principal.server).items():
        if name not in registered:
            yield prompt


def prompt_called(rights: Rights, name: str) -> Prompt | None:
    registered = rights.registry.prompts.get(name)
    return registered or stored_prompts.read(rights.principal.server).get(name)
