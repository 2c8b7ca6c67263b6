"""One call of an action's tool: choose the records, show what would happen, and have it done."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
from django.contrib.admin import ModelAdmin
from django.utils.text import get_text_list
from msgspec import UNSET

from mcp_django.context import CallContext
from mcp_django.exceptions import QueryError, ToolError
from mcp_django.exposure.admin_bridge.actions import (
    MENU,
    ActionRun,
    AdminAnswer,
    Kind,
    not_found,
)
from mcp_django.exposure.admin_bridge.compat import AdminAction, Place
from mcp_django.exposure.admin_bridge.dry_runs import dry_run
from mcp_django.exposure.admin_bridge.pages import (
    ActionPage,
    check_value,
    fill_in,
    read_action_page,
)
from mcp_django.exposure.admin_bridge.relations import AdminDescriber
from mcp_django.exposure.admin_bridge.requests import messages_as_json
from mcp_django.exposure.forms.values import Pair, Post
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import RETURN, key_value
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths, Condition, allowed_paths
from mcp_django.exposure.query.arguments import Filters
from mcp_django.exposure.query.filters import ParsedFilters, parse
from mcp_django.exposure.query.find import Record, Search, judge, layout_of
from mcp_django.exposure.query.pagination import parse_order
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.serializers import encoder
from mcp_django.exposure.questions import confirmations
from mcp_django.exposure.questions.conversation import Elicitation
from mcp_django.exposure.tools.records import result_of
from mcp_django.protocol.results import ToolResult

# Which records an action is for: named by key, or found as `find_records` finds them.

#: Records that one call may act on.
MOST_RECORDS = 1000
#: Records that are shown before a call acts on them.
SAMPLES = 3
#: Fields of each.
SAMPLE_FIELDS = 4


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Records that exist for the caller, in the order of the model."""

    keys: Sequence[Any]
    #: The first of them, as a JSON array.
    samples: bytes = b"[]"

    @property
    def digest(self) -> str:
        """Of the keys in any order: other records make another one."""
        text = msgspec.json.encode(sorted(str(key) for key in self.keys))
        return hashlib.sha256(text).hexdigest()


def named(rights: Rights, exposure: ModelExposure, pks: Sequence[Any]) -> Selection:
    """The records with these keys. Raises NotFound that names those that do not exist for the
    caller, if there is one.
    """
    access = allowed_paths(rights, exposure)
    using = rights.rows(exposure.model).db
    keys: dict[str, Any] = {}
    unknown = []
    for given in pks:
        try:
            key = key_value(access.key_paths[0].field, given, using=using)
        except QueryError:
            unknown.append(str(given))
        else:
            keys[str(key)] = key
    wanted = ParsedFilters(
        filters=[Condition(path=access.key_paths[0], operator="in", value=list(keys.values()))]
    )
    found = found_records(rights, access, wanted)
    known = {str(key) for key in found.keys}
    if missing := [*unknown, *(key for key in keys if key not in known)]:
        raise not_found(missing)
    return found


def filtered(rights: Rights, exposure: ModelExposure, asked: Filters) -> Selection:
    """The records that filters find. Raises ToolError where they find none, or too many, or
    would find all.
    """
    # A search for blanks is one for nothing.
    if not (asked.filters or asked.exclude or (asked.search and asked.search.split())):
        raise ToolError("Empty filters would select every record. Say which you mean, or use pks.")
    access = paths_of_call(rights, exposure, asked)
    using = rights.rows(exposure.model).db
    found = found_records(rights, access, parse(rights, access, asked, using=using))
    if not found.keys:
        raise ToolError(
            "These filters find no record. Nothing was done. Try them with find_records first."
        )
    return found


def found_records(rights: Rights, access: AccessiblePaths, wanted: ParsedFilters) -> Selection:
    shown = access.names(RETURN)
    # What tells records apart: their keys and labels, if the caller sees them.
    telling = [*(part.name for part in access.keys), *access.exposure.label_fields]
    fields = [name for name in telling if name in shown] or list(shown[:SAMPLE_FIELDS]) or None
    search = Search(
        rights=rights,
        access=access,
        layout=layout_of(access, fields),
        order=parse_order(access, None),
        parsed_filters=wanted,
        using=rights.rows(access.model).db,
    )
    rows = search.rows(None, most=MOST_RECORDS)
    if rows.has_more:
        raise QueryError(
            f"These filters find more than {MOST_RECORDS} records, which is the most for one "
            "call. Nothing was done. Narrow them."
        )
    keys: Sequence[Any] = rows.columns[access.keys[0].attname][: rows.count]
    records: Sequence[Record] = rows.records()
    if rights.checks_rows_one_by_one(access.model):
        verdicts = judge(search, rows)
        keys = [key for key, is_seen in zip(keys, verdicts, strict=True) if is_seen]
        records = [one for one, is_seen in zip(records, verdicts, strict=True) if is_seen]
    return Selection(keys=list(keys), samples=encoder.encode(list(records[:SAMPLES])))


NOT_YET = "Nothing was done yet. If this is wanted, call again with"
ONCE_MORE = "The admin asks again. Correct the answer and call again with"


@dataclass(frozen=True, kw_only=True, eq=False)
class ActionCall:
    """One call of the tool of an action.

    Where the records are shown before the action is chosen, a confirmation is for these records;
    else it is for the page that came, and for its records.
    """

    context: CallContext
    rights: Rights
    tool: str
    action: AdminAction
    exposure: ModelExposure
    model_admin: ModelAdmin[Any]
    #: The arguments, read into the struct of the tool. Not every tool has each of them.
    given: Any
    #: The same as they were sent: an answer of a person is for these.
    sent: Mapping[str, Any]

    def check(self, answer_schema: dict[str, Any] | None) -> Selection:
        """The records. Raises ToolError where these arguments would be refused before the action
        is run. `answer_schema` is that of a declared form.
        """
        self._menu_pairs()
        answer = self._page_answer()
        if answer and answer_schema is not None:
            check_value("answer", answer, answer_schema)
        return self.selection

    def run(self) -> ToolResult:
        """Raises ToolError for what cannot be done, in words that say what can."""
        # First: without records nothing else is to be said.
        digest = self.selection.digest
        menu = self._menu_pairs()
        if self._value("dry_run"):
            return self._try(menu)
        if self._asks_first():
            if self._token is None and not self.context.can_ask:
                form = self._declared("mcp_form")
                schema = None if form is None else AdminDescriber(self.rights).form(form())
                return self._answer("preview", **self._way_on(schema, digest, NOT_YET))
            self._confirm(shown=digest)
        run = self._run()
        answer = run.start(menu)
        if answer.kind is not Kind.PAGE:
            return self._done(answer)
        page = self._read(answer, run)
        return self._done(answer, page) if page.form is None else self._turn(run, page)

    def _turn(self, run: ActionRun, page: ActionPage) -> ToolResult:
        """Show a page, or send it where that was confirmed."""
        shown = self.selection.digest if self._asks_first() else page.digest
        post = self._post(page)
        is_free = self._is_free() or self._asks_first()
        is_confirmed = is_free or self._token is not None or self.context.can_ask
        if post is None or not is_confirmed:
            return self._answer("asks", page, **self._way_on(page.schema, shown, NOT_YET))
        if not is_free:
            self._confirm(shown=shown, page=page)
        sent = run.send(page.path, post.pairs, post.files)
        if sent.kind is not Kind.PAGE:
            return self._done(sent)
        # What the admin finds wrong with the answer, or what it asks next. The next call starts
        # with the first page again.
        again = self._read(sent, run)
        answer = self._answer(
            "asks again",
            again,
            errors=again.errors(self.rights),
            messages=messages_as_json(sent.messages),
            **self._way_on(again.schema, shown, ONCE_MORE),
        )
        return replace(answer, is_error=True)

    def _confirm(self, *, shown: str, page: ActionPage | None = None) -> None:
        """Go on only with a confirmation of what was shown: a token, or a person who agrees."""
        if self._token is not None:
            confirmations.redeem(
                self.rights,
                self._token,
                tool=self.tool,
                arguments=self._confirmed_arguments,
                digest=shown,
            )
            return
        conversation = Elicitation(
            self.context,
            self.rights,
            method="tools/call",
            name=self.tool,
            arguments=self.sent,
            is_single_use=True,
        )
        conversation.confirm(self._question(page), key=confirmations.ARGUMENT, digest=shown)

    def _question(self, page: ActionPage | None) -> str:
        """What a person is asked to agree to."""
        keys, records = self.selection.keys, msgspec.json.decode(self.selection.samples)
        shown = "; ".join(", ".join(f"{one}" for one in record.values()) for record in records)
        more = ", ..." if len(keys) > len(records) else ""
        parts = [f"{self.action.description}: {len(keys)} records ({shown}{more})."]
        if page is not None:
            parts.append(page.text)
        if answer := self._value("answer"):
            parts.append(msgspec.json.format(msgspec.json.encode(answer)).decode())
        return "\n\n".join(parts)

    def _try(self, menu: Sequence[Pair]) -> ToolResult:
        """Do all of it and take it back, which needs no confirmation."""
        model, page = self.exposure.model, None
        run = self._run(is_tried=True)
        with dry_run(self.rights, watch=((model, key) for key in run.given)) as difference:
            answer = run.start(menu)
            page = self._read(answer, run) if answer.kind is Kind.PAGE else None
            post = None if page is None or page.form is None else self._post(page)
            if page is not None and post is not None:
                answer = run.send(page.path, post.pairs, post.files)
                page = self._read(answer, run) if answer.kind is Kind.PAGE else None
        members: dict[str, Any] = {
            "would_be": answer.kind.value,
            "messages": messages_as_json(answer.messages),
        }
        if page is not None:
            members["errors"] = page.errors(self.rights)
            members["answer_schema"] = page.schema if page.asks else {}
        told = self._answer("tried", page, **members, difference=difference.as_json())
        return replace(told, is_error=answer.is_error)

    # Answers

    def _done(self, answer: AdminAnswer, page: ActionPage | None = None) -> ToolResult:
        told = self._answer(
            answer.kind.value, page, messages=messages_as_json(answer.messages), link=answer.link
        )
        # The address of a file: it cannot be read a second time.
        uri = f"django://actions/{self.exposure.label}/{self.action.name}"
        beside = [] if answer.file is None else [answer.file.embedded(uri)]
        return replace(
            told,
            content=[*told.content, *beside],
            is_error=answer.is_error,
            records=len(self.selection.keys),
        )

    def _way_on(self, schema: dict[str, Any] | None, shown: str, sentence: str) -> dict[str, Any]:
        """How to have done what is shown, of which `shown` is the digest."""
        members: dict[str, Any] = {"first": msgspec.Raw(self.selection.samples)}
        needed = ["the same arguments"]
        if schema is not None and schema["properties"]:
            members["answer_schema"] = schema
            needed.append("an answer that fits answer_schema")
        if not self._is_free():
            members[confirmations.ARGUMENT] = confirmations.issue(
                self.rights, tool=self.tool, arguments=self._confirmed_arguments, digest=shown
            )
            needed.append("this confirmation")
        return {**members, "next": f"{sentence} {get_text_list(needed, 'and')}."}

    @property
    def _confirmed_arguments(self) -> dict[str, str]:
        """The arguments that a confirmation is for: these records, however they were named."""
        return {"records": self.selection.digest}

    def _answer(self, outcome: str, page: ActionPage | None = None, **members: Any) -> ToolResult:
        told: dict[str, Any] = {"outcome": outcome, "records": len(self.selection.keys)}
        if page is not None:
            told["page"] = {"title": page.title, "text": page.text}
        told |= {name: value for name, value in members.items() if value not in ([], {}, "")}
        return result_of(msgspec.json.encode(told))

    def _run(self, *, is_tried: bool = False) -> ActionRun:
        return ActionRun(
            self.context,
            self.rights,
            self.model_admin,
            self.action,
            self.selection.keys,
            is_tried=is_tried,
        )

    def _read(self, answer: AdminAnswer, run: ActionRun) -> ActionPage:
        return read_action_page(answer, run, declared=self._declared("mcp_form"))

    def _post(self, page: ActionPage) -> Post | None:
        """What is sent of a page, or None while something is missing that it asks for.

        Raises ToolError for an answer that does not fit.
        """
        answer = self._page_answer()
        if answer is not None:
            page.check(answer)
        if answer is None and page.required:
            return None
        return page.post(answer or {}, self.rights)

    def _declared(self, name: str) -> Any:
        """What the site says of the action with one of its attributes, or None."""
        return getattr(self.action.function, name, None)

    def _value(self, name: str) -> Any:
        value = getattr(self.given, name, UNSET)
        return None if value is UNSET else value

    @property
    def _token(self) -> Any:
        return self._value(confirmations.ARGUMENT)

    def _is_free(self) -> bool:
        """Whether nothing has to be confirmed, as the site says and staff do not deny."""
        return self._declared("mcp_confirm") is False and not self._is_guarded()

    def _is_guarded(self) -> bool:
        """Whether staff want every call to be confirmed."""
        decision = self.rights.exposed.decisions.tools.get(self.tool)
        return decision is not None and decision.needs_confirmation

    def _asks_first(self) -> bool:
        """Whether the records are shown before the action is even chosen."""
        declared = self._declared("mcp_confirm")
        if declared is not None or self._is_guarded():
            return bool(declared) or self._is_guarded()
        return self._filters() != Filters() and not self._declared("mcp_read_only")

    def _filters(self) -> Filters:
        """How the records are to be found, beside by their keys."""
        names = ("filters", "exclude", "search")
        return Filters(**{name: getattr(self.given, name, UNSET) for name in names})

    @cached_property
    def selection(self) -> Selection:
        """Raises ToolError unless there are records, all of them there for the caller."""
        place, pks, asked = self.action.place, self._value("pks"), self._filters()
        if place is Place.MODEL_BUTTON:
            return Selection(keys=[])
        if place is not Place.CHANGELIST:
            return named(self.rights, self.exposure, [self.given.pk])
        if (pks is None) == (asked == Filters()):
            raise ToolError(
                'Name the records: by "pks", or by "filters", "exclude", "search". '
                "An empty value names none."
            )
        if pks is not None:
            return named(self.rights, self.exposure, pks)
        return filtered(self.rights, self.exposure, asked)

    # The form of the menu: some sites have more in it than the action.

    def _menu_form(self) -> Any:
        prefix = "CHANGE_FORM" if self.action.place is Place.CHANGE_FORM else None
        form = self.model_admin.action_form(auto_id=False, prefix=prefix)
        for name in MENU.intersection(form.fields):
            del form.fields[name]
        return form

    def _menu_pairs(self) -> Sequence[Pair]:
        form, answer = self._menu_form(), self._value("answer") or {}
        missing = [
            name for name, field in form.fields.items() if field.required and name not in answer
        ]
        if missing:
            schema = msgspec.json.encode(AdminDescriber(self.rights).form(form)).decode()
            raise ToolError(f"answer: missing {', '.join(missing)}. It takes: {schema}")
        post = Post()
        for name in form.fields:
            if name in answer:
                fill_in(post, form[name], answer[name], rights=self.rights)
        return post.pairs

    def _page_answer(self) -> dict[str, Any] | None:
        answer = self._value("answer")
        if answer is None:
            return None
        menu = self._menu_form().fields
        return {name: value for name, value in answer.items() if name not in menu}
