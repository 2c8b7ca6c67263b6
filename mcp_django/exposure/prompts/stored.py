"""Prompts that staff wrote: rows, which are read again when something has changed."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group
from django.db import Error, models, router, transaction

from mcp_django.cached import Cached
from mcp_django.connections import apart
from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.decisions import PromptDecision
from mcp_django.exposure.fields import choices_of, quoted
from mcp_django.exposure.limits import raise_lost_database
from mcp_django.exposure.paths import RETURN, Path, declaration_of
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import Prompt
from mcp_django.exposure.prompts.contents import (
    Body,
    BrokenContents,
    Contents,
    TemplatePrompt,
    compile_contents,
    parse_contents,
)
from mcp_django.exposure.query import completion as completion_queries
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.find import check_shows_records, row_of
from mcp_django.exposure.query.selection import Selection, select_paths
from mcp_django.exposure.query.serializers import Columns, as_text
from mcp_django.exposure.resources import completion
from mcp_django.exposure.resources.models import key_of
from mcp_django.models import PromptTemplate, PromptVersion
from mcp_django.principal import READ
from mcp_django.protocol.results import PromptDefinition
from mcp_django.stores.cache_version import cache_version
from mcp_django.templating.lookups import Code, Record

if TYPE_CHECKING:
    from mcp_django.exposure.options import ModelExposure


# Versions of a stored prompt: each save adds one, and none ever changes.


def newest_version(template: PromptTemplate) -> PromptVersion | None:
    return PromptVersion.objects.filter(template=template.pk).order_by("-number").first()


def add_version(
    template: PromptTemplate, contents: Contents, *, user: Any = None, comment: str = ""
) -> PromptVersion:
    """Add the next version. Two saves at once get two numbers."""
    using = router.db_for_write(PromptVersion, instance=template)
    with transaction.atomic(using=using):
        # A second save waits here.
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
    """What a version says. A version that cannot be read any more is empty."""
    if version is None:
        return Contents()
    try:
        return parse_contents(version.arguments, version.messages)
    except BrokenContents:
        return Contents()


# Objects as arguments: templates get what the caller may read of them, and nothing else.

#: Types that templates get as they are: filters such as `date`, and comparisons, need them.
AS_THEY_ARE = frozenset({bool, int, float, Decimal, date, datetime, time, timedelta, type(None)})
PLAIN_JSON = (list, dict)
MOST_NAMED = 5


def object_of(rights: Rights, label: str, text: str, *, argument: str) -> Record:
    """The object that a text names, by its key or by the whole text of a label field.

    Raises ToolError, in the same words for what is missing and what the caller may not see.
    """
    missing = ToolError(f"Argument {argument}: there is no {label} {quoted(text)}.")
    try:
        exposure = rights.exposure(label)
    except NotFound:
        raise missing from None
    check_shows_records(exposure)
    with suppress(NotFound):
        return record_of(rights, exposure, text)
    wanted = text.casefold()
    candidates, _ = completion_queries.keys_of(rights, exposure, text)
    keys = [
        key
        for key, texts in candidates.items()
        if text and any(word.casefold() == wanted for word in texts[1:])
    ]
    if len(keys) == 1:
        return record_of(rights, exposure, keys[0])
    if keys:
        named = ", ".join(keys[:MOST_NAMED])
        raise ToolError(
            f"Argument {argument}: {len(keys)} objects of {label} are called {quoted(text)}. "
            f"Send a key: {named}."
        )
    raise missing


def complete_object(rights: Rights, label: str, value: str) -> list[str]:
    """Keys of visible objects that match what was typed, by key or label."""
    with suppress(NotFound):
        exposure = rights.exposure(label)
        if not exposure.aggregates_only:
            return list(completion.keys(rights, exposure, value).values)
    return []


def labelled_keys(rights: Rights, label: str) -> list[tuple[str, str]]:
    """The first keys to choose from, each with the label of its object."""
    with suppress(NotFound):
        candidates, _ = completion_queries.keys_of(rights, rights.exposure(label), "")
        return [(key, " ".join(texts[1:]) or key) for key, texts in candidates.items()]
    return []


# What templates get


def set_value(record: Record, names: Sequence[str], value: Any) -> None:
    """Set a value behind these names, in records inside the record."""
    name, *rest = names
    before = record.values.get(name)
    if rest:
        if not isinstance(before, Record):
            before = record.values[name] = Record({}, "")
        set_value(before, rest, value)
    elif isinstance(value, Record) and isinstance(before, Record):
        before.text = value.text
        before.values |= value.values
    elif value is not None or name not in record.values:
        record.values[name] = value


def without_empty(record: Record) -> Record | None:
    """The record with None for those inside that are empty: foreign keys that lead nowhere."""
    for name, value in record.values.items():
        if isinstance(value, Record):
            record.values[name] = without_empty(value)
    has_values = any(value is not None for value in record.values.values())
    return record if record.text or has_values else None


def record_of(rights: Rights, exposure: ModelExposure, key: str) -> Record:
    """Raises NotFound. Its names are those that records of this caller have, and `pk`."""
    access = allowed_paths(rights, exposure)
    selection = select_paths(access, None, whole=True)
    columns = row_of(rights, access, key_of(exposure, [key]), selection=selection).columns
    record = Record({}, "")
    for path in access.paths[RETURN]:
        set_value(record, path.names, value_of(path, selection, columns))
        if choices_of(path.field):
            label = display_of(path.field, first(selection, path, columns))
            set_value(record, display_names(path), label)
    table = access.tables[RETURN]
    labels = [path.text for path in declaration_of(exposure).labels if path.text in table]
    without_empty(record)
    record.text = " ".join(as_text(columns[table[name].lookup][0]) for name in labels) or key
    record.values["pk"] = Code(key) if CODE.fullmatch(key) else key
    return record


def value_of(path: Path, selection: Selection, columns: Columns) -> Any:
    if path.field.is_relation:
        # Its key, and what stands for the other row if that may be seen.
        key, labels = first(selection, path, columns), selection.labels.get(path.text)
        if key is None:
            return None
        label = "" if labels is None else labels(columns).texts.get(str(key))
        return Record({"pk": key if is_plain(key) else as_text(key)}, label or as_text(key))
    raw = columns[path.lookup][0]
    value = raw if is_plain(raw) else first(selection, path, columns)
    is_told = is_plain(value) or isinstance(value, PLAIN_JSON)
    return as_code(path.field, value if is_told else as_text(value))


#: A key or a number of something. It has no room for a sentence.
CODE = re.compile(r"(?=.*[0-9A-Z])[A-Za-z0-9][A-Za-z0-9._/-]{0,19}")


def as_code(field: Any, value: Any) -> Any:
    """A Code where the field holds no free text: choices, UUIDs, slugs, and short unique texts
    that are no name of a user. Anything else as it is.
    """
    if not isinstance(value, str):
        return value
    choices = choices_of(field)
    if choices:
        return Code(value) if any(value == key for key, _ in choices) else value
    if isinstance(field, models.UUIDField):
        return Code(value)
    is_login = getattr(field.model, "USERNAME_FIELD", None) == field.name
    is_code = isinstance(field, models.CharField if field.unique else models.SlugField)
    is_code = is_code and not is_login and not isinstance(field, models.EmailField)
    return Code(value) if is_code and CODE.fullmatch(value) else value


def display_of(field: Any, value: Any) -> Any:
    """The label of a choice, which the site wrote. A list of choices has none, and a value that is
    no choice stands for itself.
    """
    if value is None or isinstance(value, list | dict):
        return value
    labels = {str(key): Code(as_text(label)) for key, label in choices_of(field)}
    return labels.get(str(value), str(value))


def is_plain(value: Any) -> bool:
    return type(value) in AS_THEY_ARE or isinstance(value, str)


def first(selection: Selection, path: Path, columns: Columns) -> Any:
    return selection.renders[path.text](columns)[0]


def display_names(path: Path) -> tuple[str, ...]:
    return (*path.names[:-1], f"get_{path.names[-1]}_display")


def names_of(exposure: ModelExposure) -> list[str]:
    """The names that templates may use of an object, whatever a caller may see of it."""
    names: list[tuple[str, ...]] = [("pk",)]
    for path in declaration_of(exposure).paths[RETURN]:
        names += [path.names, *[display_names(path)] * bool(choices_of(path.field))]
    return list(dict.fromkeys(map(".".join, names)))


# What staff decided about prompts of code and of files.


def prompt_exists(rights: Rights, prompt: Prompt) -> bool:
    """Whether this caller may know of the prompt: what staff say, then what the prompt says."""
    return rights.is_left(decision_about(rights, prompt)) and prompt.exists_for(rights)


def prompt_definition(rights: Rights, prompt: Prompt) -> PromptDefinition:
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


logger = logging.getLogger("mcp_django")


class StoredPrompt(TemplatePrompt):
    """A row, with what its newest version says."""

    def __init__(self, row: PromptTemplate, body: Body, *, groups: frozenset[Any]) -> None:
        super().__init__(row.name, body, title=row.title, description=row.description)
        self.groups = groups

    def exists_for(self, rights: Rights) -> bool:
        # Whoever may call this server: all that a prompt shows beyond its own words is read with
        # the rights of the caller.
        return rights.has_scopes(frozenset({READ})) and rights.is_member(self.groups)

    def add_objects(self, rights: Rights, names: dict[str, Any], texts: dict[str, str]) -> None:
        for name, label in self.body.contents.models.items():
            if name in texts:
                names[name] = record = object_of(rights, label, names[name], argument=name)
                texts[name] = record.values["pk"]

    def complete(self, rights: Rights, argument: str, value: str) -> list[str] | None:
        label = self.body.contents.models.get(argument)
        if label is not None:
            return complete_object(rights, label, value)
        return super().complete(rights, argument, value)


# All prompts


@dataclass(frozen=True, kw_only=True)
class CachedPrompts:
    prompts: Mapping[str, StoredPrompt]
    #: By version, which never changes, and its time: SQLite gives the key of a row that was rolled
    #: back to the next one. None: no prompt can be made of it.
    bodies: Mapping[Any, Body | None]


_prompts: Cached[CachedPrompts] = Cached()


def stored_prompts(server: str) -> Mapping[str, StoredPrompt]:
    """The enabled prompts of a server, by name, without a query while nothing has changed. One
    that is broken is left out.
    """
    now = cache_version(server)
    key = server, now.places
    try:
        return _prompts.get(now, make=partial(load_prompts, server), key=key).prompts
    except Error as error:
        raise_lost_database(error)
        # Not migrated: use what is known, and cache nothing.
        logger.warning("Stored prompts cannot be read.", exc_info=True)
        latest = _prompts.latest(key)
        return latest.prompts if latest else {}


def load_prompts(server: str, before: CachedPrompts | None) -> CachedPrompts:
    compiled = before.bodies if before else {}
    bodies: dict[Any, Body | None] = {}
    prompts = {}
    for version in enabled_versions(server):
        key = version.pk, version.created_at
        try:
            body = compiled[key] if key in compiled else body_of(version)
        except BrokenContents as error:
            logger.error("The stored prompt %s is left out: %s", version, error)
            body = None
        bodies[key] = body
        if body is not None:
            template = version.template
            groups = frozenset(group.pk for group in template.groups.all())
            prompts[template.name] = StoredPrompt(template, body, groups=groups)
    return CachedPrompts(prompts=prompts, bodies=bodies)


def body_of(version: PromptVersion) -> Body:
    """Raises BrokenContents."""
    return compile_contents(parse_contents(version.arguments, version.messages))


def enabled_versions(server: str) -> list[PromptVersion]:
    """The newest version of each enabled prompt, with its groups. Three queries."""
    # A replica could lag behind the cache version.
    using = router.db_for_write(PromptTemplate)
    newest = PromptVersion.objects.using(using).order_by("-number")[:1]
    templates: Any = PromptTemplate.objects.using(using).filter(server=server, enabled=True)
    templates = templates.prefetch_related(
        models.Prefetch("versions", newest, to_attr="newest_versions"),
        models.Prefetch("groups", Group.objects.using(using)),
    )
    # A missing table must not break the transaction around the call.
    with apart(using):
        return [version for template in templates for version in template.newest_versions]


def all_prompts(rights: Rights) -> Iterator[Prompt]:
    """Every prompt of this server, whoever may get it: those of code and files, then rows."""
    registered = rights.registry.prompts
    yield from registered.values()
    for name, prompt in stored_prompts(rights.principal.server).items():
        if name not in registered:
            yield prompt


def prompt_called(rights: Rights, name: str) -> Prompt | None:
    registered = rights.registry.prompts.get(name)
    return registered or stored_prompts(rights.principal.server).get(name)


def prompt_groups(server: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """To whom the prompts of staff are given, by name: the same text in each process."""
    rows = stored_prompts(server)
    return tuple((name, tuple(sorted(map(str, rows[name].groups)))) for name in sorted(rows))
