"""What staff decided, as one process knows it: read when the generation says that it changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import Error, connections, router, transaction

from mcp_django.exposure.generation import Mark, known_mark, mark
from mcp_django.levels import Level
from mcp_django.models import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    ServerSettings,
    UserRestriction,
)
from mcp_django.principal import DEFAULT_SERVER


@dataclass(frozen=True, kw_only=True)
class ModelDecision:
    """One row about a model. None: as in code."""

    level: Level | None = None
    fields: tuple[str, ...] | None = None
    filter_fields: tuple[str, ...] | None = None
    order_fields: tuple[str, ...] | None = None
    group_fields: tuple[str, ...] | None = None
    #: Only for members of these. Empty: for everybody.
    groups: frozenset[Any] = frozenset()
    notes: str = ""


@dataclass(frozen=True, kw_only=True)
class ToolDecision:
    """One row about a tool. What is empty or None is as in code."""

    enabled: bool | None = None
    title: str = ""
    description: str = ""
    annotations: tuple[tuple[str, bool], ...] = ()
    needs_confirmation: bool = False
    calls_per_minute: int | None = None
    groups: frozenset[Any] = frozenset()


@dataclass(frozen=True, kw_only=True)
class PromptDecision:
    """One row about a prompt of code or of a file. What is empty or None is as it is there."""

    enabled: bool | None = None
    title: str = ""
    description: str = ""
    groups: frozenset[Any] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """All rows about one server. By label, by name."""

    models: Mapping[str, ModelDecision] = field(default_factory=dict)
    tools: Mapping[str, ToolDecision] = field(default_factory=dict)
    prompts: Mapping[str, PromptDecision] = field(default_factory=dict)
    instructions: str = ""
    read_only: bool = False
    #: Keys of users whose assistants may change nothing.
    read_only_users: frozenset[Any] = frozenset()
    #: Nobody is answered.
    closed: bool = False
    #: Keys of users whose credentials are not good.
    blocked_users: frozenset[Any] = frozenset()


NOTHING_DECIDED = Decisions()


class KeptDecisions:
    """By server, under the mark that they were read under."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Mark, Decisions]] = {}

    def get(self, server: str) -> Decisions:
        # The mark first: a change while the rows are read makes another mark.
        now = known_mark(server) or mark(server)
        kept = self._kept.get(server)
        if kept is None or kept[0] != now:
            # Two threads may do this at once: then one of them has read for nothing.
            kept = self._kept[server] = now, self._read(server, kept)
        return kept[1]

    def known(self, server: str) -> Decisions | None:
        """What `get` would answer without a query, for event loops."""
        kept = self._kept.get(server)
        return kept[1] if kept is not None and kept[0] == known_mark(server) else None

    def _read(self, server: str, kept: tuple[Mark, Decisions] | None) -> Decisions:
        found = read_decisions(server)
        # The same object while nothing differs: much is kept that was made from it.
        return kept[1] if kept is not None and kept[1] == found else found


_decisions = KeptDecisions()
known_decisions = _decisions.known


def decisions(server: str = DEFAULT_SERVER) -> Decisions:
    """What staff decided about a server, at most a second ago."""
    return _decisions.get(server)


def read_decisions(server: str) -> Decisions:
    """The rows as they are now. Nothing where the tables were not made yet."""
    # A replica that lags would open again what was closed.
    alias = router.db_for_write(ExposedModel)
    try:
        if connections[alias].in_atomic_block:
            # A missing table must not break the transaction around the call.
            with transaction.atomic(using=alias):
                return read_rows(server, alias)
        return read_rows(server, alias)
    except Error:
        if ExposedModel._meta.db_table in connections[alias].introspection.table_names():
            raise
        return NOTHING_DECIDED


def read_rows(server: str, alias: str) -> Decisions:
    models = ExposedModel.objects.using(alias).filter(server=server).prefetch_related("groups")
    tools = ExposedTool.objects.using(alias).filter(server=server).prefetch_related("groups")
    prompts = ExposedPrompt.objects.using(alias).filter(server=server).prefetch_related("groups")
    settings = ServerSettings.objects.using(alias).filter(server=server).first()
    restrictions = UserRestriction.objects.using(alias).filter(server=server)
    users = list(restrictions.values_list("user_id", "read_only", "blocked"))
    return Decisions(
        models={row.label.lower(): model_decision(row) for row in models},
        tools={row.name: tool_decision(row) for row in tools},
        prompts={row.name: prompt_decision(row) for row in prompts},
        instructions="" if settings is None else settings.instructions,
        read_only=settings is not None and settings.read_only,
        read_only_users=frozenset(user for user, read_only, _ in users if read_only),
        closed=settings is not None and settings.closed,
        blocked_users=frozenset(user for user, _, blocked in users if blocked),
    )


def model_decision(row: ExposedModel) -> ModelDecision:
    return ModelDecision(
        level=None if row.level is None else Level(row.level),
        fields=names(row.fields),
        filter_fields=names(row.filter_fields),
        order_fields=names(row.order_fields),
        group_fields=names(row.group_fields),
        groups=frozenset(group.pk for group in row.groups.all()),
        notes=row.notes,
    )


def tool_decision(row: ExposedTool) -> ToolDecision:
    return ToolDecision(
        enabled=row.enabled,
        title=row.title,
        description=row.description,
        annotations=tuple(sorted(row.annotations.items())),
        needs_confirmation=row.needs_confirmation,
        calls_per_minute=row.calls_per_minute,
        groups=frozenset(group.pk for group in row.groups.all()),
    )


def prompt_decision(row: ExposedPrompt) -> PromptDecision:
    return PromptDecision(
        enabled=row.enabled,
        title=row.title,
        description=row.description,
        groups=frozenset(group.pk for group in row.groups.all()),
    )


def names(value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)
