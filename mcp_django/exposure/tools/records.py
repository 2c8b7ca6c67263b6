"""The generic tools: a constant set, however many models there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec
from django.apps import apps
from django.db import router
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from msgspec import UNSET

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import InvalidArguments, NotFound, QueryError, ToolError
from mcp_django.exposure.admin_bridge.rights import (
    ADD,
    CHANGE,
    REMOVE,
    SCOPES,
    find_or_advise,
    is_writer,
    judges_pages,
    may,
    model_admin_for,
    stored_row,
    viewing_admin,
)
from mcp_django.exposure.functions.arguments import Arguments, unpacked
from mcp_django.exposure.options import ModelExposure, is_named_in
from mcp_django.exposure.paths import parse_key
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import Outcome
from mcp_django.exposure.query import aggregates, find
from mcp_django.exposure.query import arguments as asked
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.describe import describe, example
from mcp_django.exposure.query.pagination import page_limit
from mcp_django.exposure.query.related import changes_of, file_links, find_object
from mcp_django.exposure.query.selection import is_list_of_names
from mcp_django.exposure.query.tables import answer_budget, with_members
from mcp_django.exposure.questions.idempotency import once
from mcp_django.exposure.resources import models as resources
from mcp_django.exposure.tools.exports import export_records
from mcp_django.exposure.uris import SITE
from mcp_django.levels import Level
from mcp_django.models import Upload
from mcp_django.principal import READ
from mcp_django.protocol.content import Content, TextContent
from mcp_django.protocol.results import ReadResult, ToolAnnotations, ToolDefinition, ToolResult
from mcp_django.templating.fences import fenced, inside_fence

if TYPE_CHECKING:
    from mcp_django.exposure.admin_bridge import writes
else:
    # The admin is optional, but who may write has it.
    writes = SimpleLazyObject(partial(import_module, "mcp_django.exposure.admin_bridge.writes"))


class RecordTool:
    """A function of ours as a tool. It takes the caller's rights and one struct of arguments."""

    asks = False

    def __init__(
        self,
        function: Callable[[CallContext, Rights, Any], Outcome],
        arguments: type[asked.ToolArguments],
        *,
        verb: str = "",
        confirms_itself: bool = False,
        part_of: str = "",
    ) -> None:
        self.name = function.__name__
        self.function = function
        #: What it does to records. Empty: it only reads.
        self.verb = verb
        #: What is changed or deleted is shown, and the person agrees to it, in each call.
        self.confirms_itself = confirms_itself
        #: The tool without which staff leave nobody this one.
        self.part_of = part_of
        self.arguments = Arguments.of_struct(self.name, arguments)
        self._definition = ToolDefinition(
            name=self.name,
            description=" ".join((arguments.__doc__ or "").split()),
            input_schema=self.arguments.schema,
            annotations=ToolAnnotations(
                read_only=not verb,
                destructive=verb not in ("", ADD),
                idempotent=verb in ("", CHANGE),
                open_world=False,
            ),
        )

    @property
    def definition(self) -> ToolDefinition:
        if self.name != "find_records":
            return self._definition
        config = get_config()
        return page_definition(default=config.page_size, most=config.max_page_size)

    def exists_for(self, rights: Rights) -> bool:
        return rights.has_scopes(frozenset({READ}))

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        try:
            self.decode(arguments)
        except ToolError as error:
            raise self.with_example(error, rights, arguments) from None

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        try:
            return self.function(context, rights, self.decode(arguments))
        except ToolError as error:
            raise self.with_example(error, rights, arguments) from None

    def decode(self, given: Mapping[str, Any]) -> Any:
        """Return the struct of arguments. Raises InvalidArguments without an example."""
        return self.arguments.decode(spelled_out(given))

    def with_example(
        self, error: ToolError, rights: Rights, arguments: Mapping[str, Any]
    ) -> ToolError:
        """Return the refusal, with a call of this tool that works for this caller, if any."""
        call = example_for(rights, arguments.get("model"), tool=self.name)
        example = self.arguments.shown_call(call)
        kind = next((one for one in KEPT_KINDS if isinstance(error, one)), ToolError)
        return kind(f"{error}{example}") if example else error


#: Refusals that records of calls tell from others.
KEPT_KINDS = (NotFound, InvalidArguments)
#: Arguments that take a list of names. No name has a comma in it.
NAME_LISTS = ("order_by", "group_by", "fields")


def spelled_out(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with what is short for something in full.

    1. Names in one text are a list: "status,-total". A text that may be JSON, or that holds no
       name, stays as it is.
    2. A metric that is a function alone is about records: {"n": "count"}.
    """
    arguments = dict(given)
    for argument in NAME_LISTS:
        text = arguments.get(argument)
        if isinstance(text, str) and is_word(text):
            names = [name.strip() for name in text.split(",")]
            arguments[argument] = [name for name in names if name] or text
    metrics = arguments.get("metrics")
    if isinstance(metrics, str):
        metrics = unpacked(metrics, frozenset({"object"}), ())
    if isinstance(metrics, dict):
        arguments["metrics"] = {
            name: {metric: "*"} if isinstance(metric, str) and is_word(metric) else metric
            for name, metric in metrics.items()
        }
    return arguments


def is_word(text: str) -> bool:
    """Whether it cannot be the JSON of a list or an object."""
    return not text.lstrip().startswith(("[", "{"))


def result_of(
    encoded: bytes, *, content: Sequence[Content] = (), records: int | None = None
) -> ToolResult:
    """Encoded once, as text."""
    return ToolResult(content=content or [TextContent(encoded.decode())], records=records)


def result_of_write(answer: Mapping[str, Any], *, model: str, keys: Sequence[Any]) -> ToolResult:
    """The answer of a call that wrote the records with these keys."""
    text = TextContent(msgspec.json.encode(answer).decode())
    return ToolResult(content=[text], records=len(keys), model=model.lower(), keys=keys)


def example_for(rights: Rights, label: Any, *, tool: str) -> dict[str, Any]:
    """Return arguments of a tool that work for this caller, about the model with this label if
    the tool can answer about it. Empty if definitions do not make any: they name no record.
    """
    if tool == "read_resource":
        return {"uri": SITE}
    if tool not in ("describe_model", "find_records", "aggregate_records", "export_records"):
        return {}
    # Not `rights.exposures()`: to ask about every model would cost more than the call itself.
    named = rights.exposed.by_label.get(label.lower()) if isinstance(label, str) else None
    candidates = filter(None, (named, *rights.exposed.exposures.values()))
    visible = (exposure for exposure in candidates if rights.may_view(exposure.model))
    exposure = next((one for one in visible if is_asked_by(tool, rights, one)), None)
    if exposure is None:
        return {}
    if tool == "describe_model":
        return {"model": exposure.label}
    access = allowed_paths(rights, exposure)
    if tool not in access.examples:
        make = aggregates.examples if tool == "aggregate_records" else example
        access.examples[tool] = make(access)
        if tool == "export_records":
            del access.examples[tool]["limit"]
    return access.examples[tool]


def is_asked_by(tool: str, rights: Rights, exposure: ModelExposure) -> bool:
    """Return whether an example of this tool can be about the model."""
    if tool == "describe_model":
        return True
    if exposure.is_definition_only:
        return False
    if tool == "aggregate_records":
        return not rights.checks_rows_one_by_one(exposure.model)
    return not exposure.aggregates_only


class WriteTool(RecordTool):
    """A tool that writes. It exists for those who may write to any model in this way."""

    # It runs code of the site: forms, hooks, storages.

    def exists_for(self, rights: Rights) -> bool:
        # The admin is optional.
        has_admin = apps.is_installed("django.contrib.admin")
        decision = rights.exposed.decisions.tools.get(self.part_of)
        if not (has_admin and rights.is_left(decision) and is_writer(rights, self.verb)):
            return False
        return any(may(rights, one.model, self.verb) for one in rights.exposures())

    def deletes_rows(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call deletes rows in the form of a record. Raises ToolError for arguments that
        the tool does not take.
        """
        if not arguments.get("inlines"):  # nearly always
            return False
        given = self.decode(arguments)
        if not isinstance(given, asked.UpdateRecord) or given.dry_run:
            return False
        rows = [row for one in (given.inlines or {}).values() for row in one]
        return any(row.get("delete") for row in rows)

    def question(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> str:
        """Return what a person is asked before a call. Raises ToolError for what could only fail:
        for rights that are missing, and for values that no form takes.
        """
        return writes.question_about(context, rights, self.decode(arguments))


class UndoTool(WriteTool):
    """It exists where the log keeps what changes were before."""

    def exists_for(self, rights: Rights) -> bool:
        names = get_config().keep_changes
        is_writer = bool(names) and super().exists_for(rights)
        return is_writer and any(
            is_named_in(names, one.model) and may(rights, one.model, self.verb)
            for one in rights.exposures()
        )


class HistoryTool(RecordTool):
    """It exists for those to whom an admin shows pages of records."""

    def exists_for(self, rights: Rights) -> bool:
        return super().exists_for(rights) and any(
            has_pages(rights, one) for one in rights.exposures()
        )

    def is_constant(self, rights: Rights) -> bool:
        """Whether it exists, or not, for every call of this principal."""
        models = {one.model: has_pages(rights, one) for one in rights.exposures()}
        known = [has for model, has in models.items() if rights.is_constant(model)]
        return any(known) or len(known) == len(models)


class ExportTool(RecordTool):
    """It exists for those to whom the admin gives files."""

    # It reads page after page: other calls do not wait for it.

    def exists_for(self, rights: Rights) -> bool:
        model_admin = rights.admin_of(Upload)
        may_open = model_admin is not None and model_admin.has_view_permission(rights.request)
        return may_open and super().exists_for(rights)


def has_pages(rights: Rights, exposure: ModelExposure) -> bool:
    """Whether records of a model are shown, here and by an admin that lets the user in."""
    is_shown = rights.level(exposure.model) >= Level.READ and not exposure.aggregates_only
    return is_shown and rights.model_admin(exposure.model) is not None


def create_record(context: CallContext, rights: Rights, given: asked.CreateRecord) -> ToolResult:
    # Before an old answer is given again: rights may have changed since.
    exposure = rights.exposure(given.model)
    model_admin_for(rights, exposure, ADD)
    work = partial(writes.save, context, rights, given)
    sent = {"model": given.model, "values": given.values, "inlines": given.inlines or {}}
    if given.idempotency_key is UNSET or given.dry_run:
        answer = work()
    else:
        answer = once(
            context.principal,
            tool="create_record",
            key=given.idempotency_key,
            arguments=sent,
            work=work,
            is_readable=partial(is_readable, rights, exposure),
        )
    # A dry run leaves no key.
    keys = [answer["pk"]] if "pk" in answer else []
    return result_of_write(answer, model=given.model, keys=keys)


def is_readable(rights: Rights, exposure: ModelExposure, answer: dict[str, Any]) -> bool:
    """Whether the caller sees the record of an answer now, with each field that it had then, and
    each record that the answer names as added to a set.
    """
    if answer["record"] is None:
        return True
    using = router.db_for_write(exposure.model)
    try:
        record = find.get_record(rights, exposure, str(answer["pk"]), using=using)
    except ToolError:
        return False
    # The admin is optional; who has created a record has it.
    from mcp_django.exposure.admin_bridge.history import shows_members

    is_shown = set(answer["record"]) <= set(msgspec.json.decode(record))
    return is_shown and shows_members(rights, exposure.model, answer["changed"])


def update_record(context: CallContext, rights: Rights, given: asked.UpdateRecord) -> ToolResult:
    answer = writes.save(context, rights, given)
    return result_of_write(answer, model=given.model, keys=[given.pk])


#: Records that one call may change.
MOST_UPDATED = 200


def update_records(context: CallContext, rights: Rights, given: asked.UpdateRecords) -> ToolResult:
    # Late, as it imports the log of the admin.
    from mcp_django.exposure.tools.action_calls import selected_keys

    exposure = rights.exposure(given.model)
    model_admin_for(rights, exposure, CHANGE)
    find.check_shows_records(exposure)
    if not given.values:
        raise ToolError("values: name at least one field and its value. Nothing was changed.")
    filters = asked.Filters(filters=given.filters, exclude=given.exclude, search=given.search)
    keys = selected_keys(rights, exposure, asked.or_default(given.pks), filters)
    if len(keys) > MOST_UPDATED:
        raise ToolError(
            f"These are {len(keys)} records, and one call changes {MOST_UPDATED} at "
            "most. Nothing was changed. Name fewer, and call again for the others."
        )
    # In one order: two calls that change the same records must not wait for each other.
    answer = writes.save_each(context, rights, given, sorted(keys, key=str))
    return result_of_write(answer, model=given.model, keys=answer["keys"])


def undo_change(context: CallContext, rights: Rights, given: asked.UndoChange) -> ToolResult:
    answer = writes.undo(context, rights, given)
    return result_of_write(answer, model=given.model, keys=[given.pk])


def delete_record(context: CallContext, rights: Rights, given: asked.DeleteRecord) -> ToolResult:
    answer = writes.delete(context, rights, given)
    return result_of_write(answer, model=given.model, keys=answer["keys"])


#: The member of a record that holds its version. No column is called so.
VERSION = "_version"
#: The member that holds the address of its page in the admin.
ADMIN_URL = "admin_url"


@lru_cache(maxsize=8)
def page_definition(*, default: int, most: int) -> ToolDefinition:
    """The definition of find_records with the settings of the site, which no import may read."""
    definition = RECORD_TOOLS["find_records"]._definition
    properties = definition.input_schema["properties"]
    text = f"{default} without it, at most {most}."
    limit = {**properties["limit"], "description": text}
    schema = {**definition.input_schema, "properties": {**properties, "limit": limit}}
    return replace(definition, input_schema=schema)


def list_models(context: CallContext, rights: Rights, given: asked.ListModels) -> ToolResult:
    # Clients need not show a model what they know of the day.
    now = datetime.now(timezone.get_current_timezone()).isoformat(timespec="minutes")
    when = {"now": now, "time_zone": timezone.get_current_timezone_name()}
    return result_of(msgspec.json.encode({**when, **resources.overview(rights)}))


def describe_model(context: CallContext, rights: Rights, given: asked.DescribeModel) -> ToolResult:
    exposure = rights.exposure(given.model)
    # As in the list of tools: the call that writes says which scope to ask the person for.
    writing = writing_of(context, rights.with_grantable(), exposure)
    described = describe(rights, exposure, writing=writing)
    return result_of(msgspec.json.encode(described))


def find_records(context: CallContext, rights: Rights, given: asked.FindRecords) -> ToolResult:
    longest = answer_budget(context.client)
    page = find.find_records(rights, rights.exposure(given.model), given, longest=longest)
    return result_of(page.answer, records=page.count)


def get_record(context: CallContext, rights: Rights, given: asked.GetRecord) -> ToolResult:
    """The record, with links to its files and when it was changed, and with its version for
    those who may change it."""
    exposure = rights.exposure(given.model)
    obj: Any = None
    using, version = None, ""
    may_change = may(rights, exposure.model, CHANGE)
    if may_change or judges_pages(rights, exposure):
        using = rights.rows(exposure.model).db
        obj = find_or_advise(rights, exposure, given.pk, using=using)
    longest = answer_budget(context.client)
    if given.offset is not UNSET or given.search is not UNSET:
        part = part_of_record(rights, exposure, given, longest=longest, using=using, obj=obj)
        return result_of(msgspec.json.encode(part), records=1)
    if may_change:
        # The admin is optional; who may write has it.
        from mcp_django.exposure.admin_bridge.forms import version_in_form

        # The version first: a change in between makes it too old, which is safe.
        version = version_in_form(rights, stored_row(obj, exposure.model))
    encoded = find.get_record(
        rights,
        exposure,
        given.pk,
        fields=asked.or_default(given.fields),
        include=given.include,
        all_computed=True,
        using=using,
        obj=obj,
        longest=longest,
    )
    encoded = with_members(encoded, {VERSION: version} if version else {})
    model_admin = viewing_admin(rights, exposure, obj)
    if model_admin is not None:
        encoded = with_admin_url(rights, model_admin, given.pk, encoded)
    if not (exposure.modified_field or allowed_paths(rights, exposure).files):
        return result_of(encoded, records=1)
    record = msgspec.json.decode(encoded)
    text = TextContent(encoded.decode(), changes_of(exposure, record))
    links = file_links(rights, exposure, given.pk, record)
    return result_of(encoded, content=[text, *links], records=1)


def part_of_record(
    rights: Rights, exposure: ModelExposure, given: asked.GetRecord, *, longest: int, **read: Any
) -> dict[str, Any]:
    """Return a part of the one text, value of JSON or text file that a call names."""
    names: Any = given.fields
    if not is_list_of_names(names) or len(names) > 1 or given.include:
        raise QueryError("offset and search read one text: name that field alone in fields.")
    [name] = names
    if any(file.name == name for file in allowed_paths(rights, exposure).files):
        text = resources.read_file(rights, exposure, given.pk, name, uri="").text
        if text is None:
            raise QueryError(f"{name} is a file without text. Read its URI as a resource.")
        is_fenced, note = name in rights.untrusted(exposure.model), ""
    else:
        record = find.get_record(rights, exposure, given.pk, fields=names, **read)
        # A path may have another name in the record: "pk" is "id".
        [value] = msgspec.json.decode(record).values()
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        inner = inside_fence(text, rights.mark)
        # What is said of the rest stands behind the fence.
        note = "" if inner is None else text.rpartition(">")[2].strip()
        text, is_fenced = (text, False) if inner is None else (inner, True)
    offset, search = asked.or_default(given.offset, 0), asked.or_default(given.search, "")
    part = find.part_of_text(text, offset=offset, search=search, longest=longest)
    if is_fenced:
        part["text"] = fenced(part["text"], rights.mark)
    return part | ({"note": note} if note else {})


def with_admin_url(rights: Rights, model_admin: Any, pk: Any, encoded: bytes) -> bytes:
    """The record with the address of its page in the admin, for those who may open the page."""
    # The admin is optional.
    from mcp_django.exposure.admin_bridge.requests import page_address

    # A model with a composite key has no admin.
    key = pk
    if not isinstance(pk, int):
        (key,) = parse_key(model_admin.model, pk, using=rights.rows(model_admin.model).db)
    address = page_address(model_admin, "change", key)
    if address is None:
        return encoded
    is_taken = ADMIN_URL.encode() in encoded and ADMIN_URL in msgspec.json.decode(encoded)
    return encoded if is_taken else with_members(encoded, {ADMIN_URL: address})


def get_history(context: CallContext, rights: Rights, given: asked.GetHistory) -> ToolResult:
    """Of records that get_record shows, for those who may view them in the admin."""
    exposure, user = rights.exposure(given.model), asked.or_default(given.user)
    most, note = page_limit(
        asked.or_default(given.limit), default=asked.DEFAULT_ENTRIES, most=asked.MOST_ENTRIES
    )
    # The admin is optional; where it is missing there is no such tool.
    from mcp_django.exposure.admin_bridge import history

    refusal = NotFound(f"There is no history of this {exposure.label} that you may see.")
    if given.pk is UNSET:
        if not has_pages(rights, exposure):
            raise refusal
        entries = history.last_changes(rights, exposure, user=user, most=most)
        return result_of(msgspec.json.encode({"history": [one.as_json() for one in entries]}))
    obj: Any = find_object(rights, exposure, given.pk, using=rights.rows(exposure.model).db)
    log = history.log_of(rights, exposure, obj)
    if log is None:
        raise refusal
    entries = history.history_of(log, user=user, most=most)
    answer = {"history": [one.as_json() for one in entries]}
    if not (answer["history"] or log.shows_page):
        note = "Changes of fields that you cannot read are not listed."
    return result_of(msgspec.json.encode(answer | ({"note": note} if note else {})))


def aggregate_records(
    context: CallContext, rights: Rights, given: asked.AggregateRecords
) -> ToolResult:
    exposure, longest = rights.exposure(given.model), answer_budget(context.client)
    found = aggregates.aggregate_records(rights, exposure, given, longest=longest)
    return result_of(found.encoded, records=found.count)


def list_resources(context: CallContext, rights: Rights, given: asked.ListResources) -> ToolResult:
    found = [
        {"uri": one.uri, "name": one.name, "description": one.description}
        for one in resources.list_resources(rights)
    ]
    templates = [
        {"uriTemplate": one.uri_template, "name": one.name, "description": one.description}
        for one in resources.list_templates(rights)
    ]
    return result_of(msgspec.json.encode({"resources": found, "resourceTemplates": templates}))


def read_resource(context: CallContext, rights: Rights, given: asked.ReadResource) -> Outcome:
    """Records, or a resource of the site, whose code may take a while."""
    longest = answer_budget(context.client)
    found = resources.read(context, rights, given.uri, longest=longest)
    if isinstance(found, ReadResult):
        return contents_result(found)
    return found.then(contents_result)


def contents_result(read: ReadResult) -> ToolResult:
    encoded = msgspec.json.encode({"contents": [one.as_wire() for one in read.contents]})
    return result_of(encoded, records=read.records)


RECORD_TOOLS: dict[str, RecordTool] = {
    tool.name: tool
    for tool in (
        RecordTool(list_models, asked.ListModels),
        RecordTool(describe_model, asked.DescribeModel),
        RecordTool(find_records, asked.FindRecords),
        RecordTool(get_record, asked.GetRecord),
        HistoryTool(get_history, asked.GetHistory),
        RecordTool(aggregate_records, asked.AggregateRecords),
        ExportTool(export_records, asked.ExportRecords),
        RecordTool(list_resources, asked.ListResources),
        RecordTool(read_resource, asked.ReadResource),
        WriteTool(create_record, asked.CreateRecord, verb=ADD),
        WriteTool(update_record, asked.UpdateRecord, verb=CHANGE),
        WriteTool(
            update_records,
            asked.UpdateRecords,
            verb=CHANGE,
            confirms_itself=True,
            part_of="update_record",
        ),
        UndoTool(
            undo_change,
            asked.UndoChange,
            verb=CHANGE,
            confirms_itself=True,
            part_of="update_record",
        ),
        WriteTool(
            delete_record,
            asked.DeleteRecord,
            verb=REMOVE,
            confirms_itself=True,
        ),
    )
}


def writing_of(context: CallContext, rights: Rights, exposure: ModelExposure) -> dict[str, Any]:
    """What can be set of the records of a model, by tool. Empty for those who may only read."""
    if not any(may(rights, exposure.model, verb) for verb in SCOPES):
        return {}
    return writes.describe_writing(context, rights, exposure)
