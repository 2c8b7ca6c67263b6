"""The generic tools that change records: three, however many models there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import msgspec
from django.apps import apps
from msgspec import UNSET, UnsetType

from mcp_django.context import CallContext
from mcp_django.exposure.generic_tools import (
    Alternatives,
    Conditions,
    Key,
    Model,
    RecordTool,
    about,
    given_of,
    result_of,
)
from mcp_django.exposure.idempotency import once
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.tools import Lane, Outcome
from mcp_django.exposure.write_rights import ADD, CHANGE, REMOVE, may_write, model_admin_for
from mcp_django.protocol.results import ToolAnnotations

Values = Annotated[
    dict[str, Any],
    about(
        "Fields and values, as describe_model says. Related records by key, or by a text that "
        'finds one. Files: {"filename": "a.txt", "data": "<base64>"}.'
    ),
]
Inlines = Annotated[
    dict[str, list[dict[str, Any]]],
    about(
        'Rows of the form: {"lines": [{"pk": 5, "quantity": 3}, {"pk": 7, "delete": true}, '
        '{"quantity": 1}]}. Without a pk a row is new.'
    ),
]
DryRun = Annotated[bool, about("Only tell what would change.")]


class WriteTool(RecordTool):
    """Exists for those who may do it to any model at all."""

    # It runs code of the site: forms, hooks, storages.
    lane = Lane.WORK

    def __init__(
        self,
        function: Callable[..., bytes],
        *,
        verb: str,
        title: str,
        destructive: bool = True,
        idempotent: bool = False,
    ) -> None:
        annotations = ToolAnnotations(
            read_only=False, destructive=destructive, idempotent=idempotent, open_world=False
        )
        super().__init__(function, title=title, annotations=annotations)
        self.verb = verb
        #: Deletions are shown, and confirmed, by the page of the admin.
        self.confirms_itself = verb == REMOVE

    def exists_for(self, rights: Rights) -> bool:
        # The admin is optional.
        return apps.is_installed("django.contrib.admin") and may_write(rights, self.verb)

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        """As far as the form of the admin can tell before it is sent."""
        from mcp_django.exposure import admin_writes

        read = self.read(rights, given_of(arguments))
        if self.confirms_itself:
            return
        named = {name: read[name] for name in ("pk", "values", "inlines") if name in read}
        admin_writes.check(context, rights, model=read["model"], **named)

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        return result_of(self.function(context, rights, **self.read(rights, given_of(arguments))))

    def read(self, rights: Rights, given: Mapping[str, Any]) -> dict[str, Any]:
        # An example of a change could be taken for an order.
        read = self.arguments.read(given, examples=dict)
        return {name: value for name, value in read.items() if value is not UNSET}


def create_record(
    context: CallContext,
    rights: Rights,
    *,
    model: Model,
    values: Values,
    inlines: Inlines | UnsetType = UNSET,
    idempotency_key: Annotated[
        str, about("A text of your own: a call that is sent twice with it is done once.")
    ]
    | UnsetType = UNSET,
    dry_run: DryRun = False,
) -> bytes:
    """Create a record through the form of the admin, with its defaults and rules. describe_model
    says what can be set."""
    from mcp_django.exposure import admin_writes

    # Before an answer of before is given again: rights may have gone since.
    model_admin_for(rights, rights.exposure(model), ADD)
    arguments: dict[str, Any] = {"model": model, "values": values, "inlines": inlines or {}}
    work = partial(admin_writes.create, context, rights, **arguments)
    if idempotency_key is UNSET or dry_run:
        return msgspec.json.encode(work(dry_run=dry_run))
    answer = once(
        context.principal,
        tool="create_record",
        key=idempotency_key,
        arguments=arguments,
        work=work,
    )
    return msgspec.json.encode(answer)


def update_record(
    context: CallContext,
    rights: Rights,
    *,
    model: Model,
    pk: Key,
    values: Values | UnsetType = UNSET,
    inlines: Inlines | UnsetType = UNSET,
    version: Annotated[
        str, about("As get_record showed it: refuses when somebody has changed the record since.")
    ]
    | UnsetType = UNSET,
    if_unmodified_since: Annotated[str, about("The same by time, where models keep it.")]
    | UnsetType = UNSET,
    dry_run: DryRun = False,
) -> bytes:
    """Change a record through the form of the admin, with its rules. What is not named in values
    or inlines stays as it is."""
    from mcp_django.exposure import admin_writes

    return msgspec.json.encode(
        admin_writes.update(
            context,
            rights,
            model=model,
            pk=pk,
            values=values or {},
            inlines=inlines or {},
            version=version or None,
            since=if_unmodified_since or None,
            dry_run=dry_run,
        )
    )


def delete_record(
    context: CallContext,
    rights: Rights,
    *,
    model: Model,
    pk: Annotated[str | int | list[str | int], about("One key, or a list of them.")]
    | UnsetType = UNSET,
    filters: Conditions | UnsetType = UNSET,
    exclude: Conditions | UnsetType = UNSET,
    any_of: Alternatives | UnsetType = UNSET,
    confirmation: Annotated[
        str, about("What the same call without it gave, once a person has agreed.")
    ]
    | UnsetType = UNSET,
    dry_run: DryRun = False,
) -> bytes:
    """Delete records, by key or by filters. The first call deletes nothing: it shows what would
    go along, and gives a confirmation for the second."""
    from mcp_django.exposure import admin_writes

    asked = {"filters": filters, "exclude": exclude, "any_of": any_of}
    return msgspec.json.encode(
        admin_writes.delete(
            context,
            rights,
            model=model,
            pk=None if pk is UNSET else pk,
            query={name: one for name, one in asked.items() if one is not UNSET},
            confirmation=None if confirmation is UNSET else confirmation,
            dry_run=dry_run,
        )
    )


WRITE_TOOLS = (
    WriteTool(create_record, verb=ADD, title="Create a record", destructive=False),
    WriteTool(update_record, verb=CHANGE, title="Change a record", idempotent=True),
    WriteTool(delete_record, verb=REMOVE, title="Delete records"),
)
