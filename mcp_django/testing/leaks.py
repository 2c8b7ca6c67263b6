"""What assistants get of the records of a site, compared with what its admin shows their users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import chain, islice, zip_longest
from typing import Any, NamedTuple, TypeAlias

from django.conf import settings
from django.contrib.admin.utils import flatten_fieldsets
from django.db import transaction
from django.db.models import Field, Model, QuerySet
from django.http import HttpRequest
from django.test import override_settings

from mcp_django.admin.inspect.impersonation import call_as, principal_with_all_scopes
from mcp_django.exposure.admin_sites import model_admins
from mcp_django.exposure.registry import registry
from mcp_django.exposure.uris import COLLECTION
from mcp_django.protocol.errors import INTERNAL_ERROR
from mcp_django.testing.client import Client, ProtocolFailure, ToolAnswer

#: The steps of a path: fields, and the models that have them.
ModelPath: TypeAlias = tuple[tuple[type[Model], Any], ...]
Judge: TypeAlias = Callable[[Any], str]
#: Relations in a path, rows whose values are looked for, and characters of such a value.
RELATIONS, SAMPLE, SHORTEST = 2, 20, 6


def check_leaks(*, users: Iterable[Any], budget: int = 2000) -> None:
    """Raise AssertionError with the requests that tell a user more than the admin does.

    Each user makes at most `budget` requests. They only read, and the tokens are rolled back.
    """
    leaks = [leak for user in users for leak in find_leaks(user, budget=budget)]
    if leaks:
        raise AssertionError("\n".join(leaks))


def find_leaks(user: Any, *, budget: int, host: str = "testserver") -> list[str]:
    """Return a line for each request that tells the user more than the admin does."""
    request = HttpRequest()
    request.META["HTTP_HOST"] = host
    options = {**getattr(settings, "MCP_DJANGO", {}), "CALLS_PER_MINUTE": 10**9}
    with override_settings(ALLOWED_HOSTS=["*"], MCP_DJANGO=options), transaction.atomic():
        sweep = partial(Sweep, Client(user=user, host=host), budget)
        principal = principal_with_all_scopes(user)
        leaks = call_as(principal, request, lambda _, rights: [*sweep(rights.request)])
        transaction.set_rollback(True)
    return [f"as {user.get_username()}: {leak}" for leak in leaks]


class LeakCheck(NamedTuple):
    """A request, and what is wrong with an answer to it. Nothing is wrong with a refusal."""

    judge: Judge
    method: str
    names: tuple[str, ...]
    arguments: dict[str, Any] = {}

    def __str__(self) -> str:
        arguments = [f"{name}={value!r}" for name, value in self.arguments.items()]
        return f"client.{self.method}({', '.join([*map(repr, self.names), *arguments])})"


def paths_of(model: type[Model]) -> Iterator[ModelPath]:
    """Yield the paths that the ORM takes, the shortest first."""
    ends: list[tuple[ModelPath, type[Model]]] = [((), model)]
    for _ in range(RELATIONS + 1):
        paths = [
            (*path, (end, field))
            for path, end in ends
            for field in end._meta.get_fields()
            # A generic foreign key leads anywhere, and Django follows it nowhere.
            if not field.is_relation or hasattr(field, "path_infos")
        ]
        # A foreign key is the key of the related record.
        yield from (path for path in paths if len(path) == 1 or not is_own_key(path[-1][1]))
        ends = [(path, path[-1][1].related_model) for path in paths if path[-1][1].is_relation]


def is_own_key(field: Any) -> bool:
    return bool(getattr(field, "primary_key", False))


def text_of(path: ModelPath) -> str:
    return "__".join(field.name for _, field in path)


class AdminPages:
    """What the admin shows to the user of a request."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.models = [model for model in registry.candidates if model_admins(model)]
        self.names = {model: frozenset(self._names(model)) for model in self.models}
        self.has = cache(self._has)

    def _admins(self, model: type[Model]) -> Iterator[Any]:
        for one in model_admins(model):
            if one.admin_site.has_permission(self.request) and one.has_view_permission(
                self.request
            ):
                yield one

    def rows(self, model: type[Model]) -> QuerySet[Any]:
        for model_admin in self._admins(model):
            rows: QuerySet[Any] = model_admin.get_queryset(self.request).order_by()
            return rows
        return model._base_manager.none()

    def _names(self, model: type[Model]) -> Iterator[Any]:
        """The columns of its pages, and what its list is searched and filtered by."""
        for one in self._admins(model):
            row = self.rows(model).first()
            yield from (model._meta.pk.name, one.date_hierarchy)
            yield from flatten_fieldsets(one.get_fieldsets(self.request, row))
            yield from one.get_list_display(self.request)
            for part in (*one.get_list_filter(self.request), *one.get_search_fields(self.request)):
                yield part[0] if isinstance(part, tuple) else str(part).lstrip("^=@")

    def shows(self, path: ModelPath) -> bool:
        """Whether it shows each step, also from the other side of a relation."""
        return text_of(path) in self.names[path[0][0]] or all(
            field.name in self.names.get(model, ())
            if isinstance(field, Field)
            else field.remote_field.name in self.names.get(field.related_model, ())
            for model, field in path
        )

    def count(self, path: ModelPath, where: dict[str, Any]) -> int:
        """The records where it shows the related ones on the way as well."""
        ways = [path[:end] for end in range(1, len(path))]
        hops = {f"{text_of(way)}__in": self.rows(way[-1][1].related_model) for way in ways}
        return self.rows(path[0][0]).filter(**where, **hops).distinct().count()

    def _has(self, value: Any) -> bool:
        """Whether it shows the value anywhere."""
        return any(
            self.rows(model).filter(**{f"{field.name}__icontains": value}).exists()
            for model in self.models
            for field in model._meta.concrete_fields
            if field.name in self.names[model] and not field.is_relation
        )

    def samples(self, model: type[Model]) -> tuple[list[Any], list[Any]]:
        """Records that it hides, and records that it shows."""
        hidden = model._base_manager.exclude(pk__in=self.rows(model).values("pk"))
        return list(hidden[:SAMPLE]), list(self.rows(model)[:SAMPLE])


class Sweep:
    """The requests of one user, model by model in turns. Iterates over those that leak."""

    def __init__(self, client: Client, budget: int, request: HttpRequest) -> None:
        self.client, self.budget, self.admin = client, budget, AdminPages(request)
        self.samples = {model: self.admin.samples(model) for model in self.admin.models}
        #: What the admin hides, with its column.
        self.secrets = {
            str(value): f"{model._meta.label_lower}.{field.name}"
            for model, (hidden, shown) in self.samples.items()
            for field in model._meta.concrete_fields
            if not (field.is_relation or field.choices)
            for row in (hidden if field.name in self.admin.names[model] else hidden + shown)
            if len(str(value := field.value_from_object(row))) >= SHORTEST
        }

    def __iter__(self) -> Iterator[str]:
        turns = zip_longest(self.overviews(), *map(self.checks, self.admin.models))
        for check in islice(filter(None, chain.from_iterable(turns)), self.budget):
            try:
                answer = getattr(self.client, check.method)(*check.names, **check.arguments)
            except ProtocolFailure as failure:
                if failure.code == INTERNAL_ERROR:
                    yield f"{check}: {failure}"
                continue
            is_refusal = getattr(answer, "is_error", False)
            if not is_refusal and (
                reason := check.judge(answer) or self.secret_in(answer, str(check))
            ):
                yield f"{check}: {reason}"

    def secret_in(self, answer: Any, request: str) -> str:
        said = answer.text if isinstance(answer, ToolAnswer) else str(answer)
        for value in [value for value in self.secrets if value in said and value not in request]:
            if not self.admin.has(value):
                return f"the admin hides a value of {self.secrets[value]}"
            del self.secrets[value]
        return ""

    def overviews(self) -> Iterator[LeakCheck]:
        """Whatever needs no arguments."""
        for tool in self.client.list_tools():
            is_reading = tool.get("annotations", {}).get("readOnlyHint")
            if is_reading and not tool["inputSchema"].get("required"):
                yield LeakCheck(fine, "call_tool", (tool["name"],))
        for prompt in self.client.list_prompts():
            if not any(argument.get("required") for argument in prompt.get("arguments", ())):
                yield LeakCheck(fine, "get_prompt", (prompt["name"],))
        for resource in self.client.list_resources():
            yield LeakCheck(fine, "read_resource", (resource["uri"],))

    def checks(self, model: type[Model]) -> Iterator[LeakCheck]:
        label, (hidden, shown) = model._meta.label_lower, self.samples[model]
        judge = fine if self.admin.names[model] else wrong("the admin hides this model")
        yield tool_check(judge, "describe_model", label)
        yield tool_check(judge, "find_records", label, limit=100)
        yield tool_check(self.counted(((model, model._meta.pk),), {}), "aggregate_records", label)
        for row in (*hidden[:3], *shown[:3]):
            judge = wrong("the admin hides this record") if row in hidden else fine
            yield tool_check(judge, "get_record", label, pk=row.pk)
            yield tool_check(judge, "get_history", label, pk=row.pk)
            yield LeakCheck(judge, "read_resource", (f"django://objects/{label}/{row.pk}",))
        for path in paths_of(model) if self.admin.names[model] else ():
            yield from self.checks_of_path(path, label, text_of(path))

    def values(self, path: ModelPath) -> Iterator[tuple[Any, bool]]:
        """A value from a record that the admin hides, and one from a record that it shows."""
        model, field = path[-1]
        for rows in self.samples.get(model, ()):
            found = [getattr(row, getattr(field, "attname", ""), None) for row in rows]
            for value in [value for value in found if value is not None][:1]:
                sent = value if isinstance(value, bool | int | str) else str(value)
                yield sent, rows is self.samples[model][0] or not self.admin.shows(path)

    def checks_of_path(self, path: ModelPath, label: str, name: str) -> Iterator[LeakCheck]:
        is_shown = self.admin.shows(path)
        judge = fine if is_shown else wrong(f"the admin does not show {name}")
        where: dict[str, Any] = {f"{name}__isnull": True}
        for key in (
            {"exclude": where},
            {"order_by": [name]},
            {"fields": [name]},
            {"include": [name]},
        ):
            yield tool_check(judge, "find_records", label, **key)
        for key in ({"filters": where}, {"group_by": [name]}, {"metrics": {"n": {"max": name}}}):
            yield tool_check(judge, "aggregate_records", label, **key)
        offering = fine if is_shown else none_offered
        yield LeakCheck(offering, "complete", (COLLECTION.text, name), {"model": label})
        for value, is_hidden in self.values(path):
            for lookup, sent in LOOKUPS.items():
                where = {f"{name}{lookup}": sent(value)}
                counted = self.counted(path, where) if is_shown else judge
                yield tool_check(counted, "aggregate_records", label, filters=where)
            if is_hidden:
                yield tool_check(
                    self.searched(value), "find_records", label, search=str(value)[:100]
                )

    def counted(self, path: ModelPath, where: dict[str, Any]) -> Judge:
        def judge(answer: ToolAnswer) -> str:
            count, limit = answer.records[0]["count"], self.admin.count(path, where)
            return f"{count} records, of which the admin shows {limit}" if count > limit else ""

        return judge

    def searched(self, value: Any) -> Judge:
        def judge(answer: ToolAnswer) -> str:
            is_hidden = answer.records and not self.admin.has(value)
            return "this finds what the admin does not show" if is_hidden else ""

        return judge


#: What follows a path in a filter, and the value that is sent for a value that there is.
LOOKUPS: dict[str, Callable[[Any], Any]] = {
    "": lambda value: value,
    "__in": lambda value: [value],
    "__gte": lambda value: value,
    "__icontains": lambda value: str(value)[:3],
}


def tool_check(judge: Judge, tool: str, label: str, **arguments: Any) -> LeakCheck:
    return LeakCheck(judge, "call_tool", (tool,), {"model": label, **arguments})


def none_offered(values: list[str]) -> str:
    return "this completes what the admin does not show" if values else ""


def wrong(reason: str) -> Judge:
    return lambda _: reason


fine = wrong("")
