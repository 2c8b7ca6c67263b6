"""One call of an action's tool: choose the records, show what would happen, and have it done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import msgspec
from django.contrib.admin import ModelAdmin
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import router
from django.db.models import Max, QuerySet
from django.utils.text import get_text_list
from msgspec import UNSET

from mcp_django.context import CallContext
from mcp_django.exceptions import FormRefused, InputNeeded, QueryError, ToolError
from mcp_django.exposure.admin_bridge.actions import MENU, ActionRun, AdminAnswer, Kind, not_found
from mcp_django.exposure.admin_bridge.compat import AdminAction, Place
from mcp_django.exposure.admin_bridge.pages import (
    ActionPage,
    fill_in,
    page_of_form,
    read_action_page,
)
from mcp_django.exposure.admin_bridge.relations import AdminDescriber, find_related, related_words
from mcp_django.exposure.admin_bridge.requests import (
    NOTE,
    CapturedMessage,
    client_name,
    messages_as_json,
    public_address,
)
from mcp_django.exposure.forms.values import Pair, Post
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import key_value
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import Condition, allowed_paths
from mcp_django.exposure.query.arguments import Filters, or_default
from mcp_django.exposure.query.filters import ParsedFilters, parse
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.related import find_keys
from mcp_django.exposure.questions.conversation import approve
from mcp_django.exposure.questions.words import (
    LONGEST_LINES,
    cut_short,
    field_line,
    question,
    record_labels,
    value_lines,
)
from mcp_django.exposure.tools.records import result_of
from mcp_django.protocol.content import TextContent
from mcp_django.protocol.results import ToolResult
from mcp_django.signing import digest_of_json

# Which records a call is for: named by key, or found as `find_records` finds them.


def selected_keys(
    rights: Rights, exposure: ModelExposure, pks: Sequence[Any] | None, asked: Filters
) -> list[Any]:
    """The keys of the records that a call names, in one way or the other, in the order of the
    model. Raises ToolError as both do.
    """
    if (pks is None) == (asked == Filters()):
        raise ToolError(
            'Name the records: by "pks", or by "filters", "exclude", "search". '
            "An empty value names none."
        )
    return filtered(rights, exposure, asked) if pks is None else named(rights, exposure, pks)


def named(rights: Rights, exposure: ModelExposure, pks: Sequence[Any]) -> list[Any]:
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
    found = find_keys(rights, access, wanted, using=using)
    known = {str(key) for key in found}
    if missing := [*unknown, *(key for key in keys if key not in known)]:
        raise not_found(missing)
    return found


def filtered(rights: Rights, exposure: ModelExposure, asked: Filters) -> list[Any]:
    """The records that filters find. Raises ToolError where they find none, or too many, or
    would find all.
    """
    # A search for blanks is one for nothing.
    if not (asked.filters or asked.exclude or (asked.search and asked.search.split())):
        raise ToolError("Empty filters would select every record. Say which you mean, or use pks.")
    access = paths_of_call(rights, exposure, asked)
    using = rights.rows(exposure.model).db
    found = find_keys(rights, access, parse(rights, access, asked, using=using), using=using)
    if not found:
        raise ToolError(
            "These filters find no record. Nothing was done. Try them with find_records first."
        )
    return found


#: Fields that a sentence names.
MOST_NAMES = 20
NEEDS_ANSWER = (
    "Nothing was done yet. Call again with the same arguments and an answer that fits "
    "answer_schema."
)
GOES_ON = (
    "This action goes on with another page of the admin, which only a person can answer: they can "
    "go on at link, where they choose the action again."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class OfferedAction:
    """One action as one caller is offered it, and the name of its tool."""

    context: CallContext
    rights: Rights
    name: str
    action: AdminAction
    exposure: ModelExposure
    model_admin: ModelAdmin[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class ActionCall(OfferedAction):
    """One call of the tool of an action.

    Where the person is asked before the action is chosen, they agree to the records; else to the
    page that came, and to its records.
    """

    #: The arguments, read into the struct of the tool. Not every tool has each of them.
    arguments: Any
    #: What the admin has said so far.
    messages: list[CapturedMessage] = field(default_factory=list)

    def run(self) -> ToolResult:
        """Raises ToolError for what cannot be done, in words that say what can, and InputNeeded
        while values or the agreement of a person are missing.
        """
        # First: without records nothing else is to be said.
        keys, _ = self.keys, self._entries
        menu = self._menu_pairs()
        if self._asked_at() == "start":
            form = self._declared("mcp_form")
            if form is not None:
                self._post(page_of_form(form(), self.rights))
            self._approve()
        run = ActionRun(self.context, self.rights, self.model_admin, self.action, keys)
        chosen, page = run.start(menu), None
        self.messages.extend(chosen.messages)
        if chosen.kind is Kind.PAGE:
            page = read_action_page(chosen, run, declared=self._declared("mcp_form"))
        if page is None or page.form is None:
            return self._done(chosen, page)
        post = self._post(page)
        if self._asked_at() == "page":
            self._approve(page)
        sent = run.send(page.path, post.pairs, post.files)
        self.messages.extend(sent.messages)
        following = read_action_page(sent, run) if sent.kind is Kind.PAGE else None
        if following is None or following.form is None:
            return self._done(sent, following)
        if following.repeats(page, self.rights):
            again = replace(page, title=following.title, text=following.text)
            raise self._refused(again, following.errors(self.rights), "The admin asks again.")
        link = public_address(run.home)
        return self._done(sent, following, outcome="goes on", link=link, next=GOES_ON)

    def _post(self, page: ActionPage) -> Post:
        """Return what is sent of a page. Raises ToolError for values that do not fit, and
        InputNeeded without those that the page requires.
        """
        values = self._values
        if values is not None:
            page.check(values)
        elif page.required:
            asks = self._members(
                page, outcome="asks", answer_schema=page.schema, next=NEEDS_ANSWER
            )
            raise InputNeeded(result_of(msgspec.json.encode(asks)))
        post = page.post(values or {}, self.rights)
        if errors := page.refusals(post, self.rights):
            raise self._refused(page, errors, "Nothing was done.")
        return post

    def _approve(self, page: ActionPage | None = None) -> None:
        """Go on only if the person agrees: to the page with its values, or without one to the
        records and all values.
        """
        keys = self.keys
        labels = record_labels(self.rights, self.exposure.model, keys) if keys else []
        statement = [] if page is None else [page.statement]
        lines = cut_short("\n".join(self._answer_lines(page)), LONGEST_LINES)
        approve(
            self.context,
            self.rights,
            tool=self.name,
            arguments=msgspec.to_builtins(self.arguments),
            question=question(
                self.action.description, labels=labels, count=len(keys), parts=[*statement, lines]
            ),
            # In any order: other records make another one.
            digest=digest_of_json(sorted(map(str, keys)), "" if page is None else page.digest),
            preview=lambda: self._members(
                page,
                outcome="asks",
                answer_schema={} if page is None or not page.asks else page.schema,
            ),
        )

    # Questions

    def _answer_lines(self, page: ActionPage | None) -> Iterator[str]:
        """The values for the menu and the page, or without a page all values of the answer, by
        the labels of their fields as far as forms are known.
        """
        related = partial(related_words, self.rights)
        form = self._declared("mcp_form")
        forms = [self._menu_form(), *([] if form is None else [form()])]
        for name, value in (self._value("answer") or {}).items():
            source = next((candidate for candidate in forms if name in candidate.fields), None)
            if page is not None and name in page.asks:
                yield from page.answer_lines({name: value}, self.rights)
            elif source is not None:
                yield field_line(source[name], value, related=related)
            elif page is None:
                yield value_lines({name: value})

    # Answers

    def _refused(self, page: ActionPage, errors: Mapping[str, Any], sentence: str) -> FormRefused:
        """Return what a form finds wrong with the values of the answer."""
        # A rule over several fields may name none: then all.
        wrong = [name for name in errors if name] or list(page.asks)[:MOST_NAMES]
        members = self._members(
            page,
            outcome="asks again",
            errors=errors,
            answer_schema=page.schema,
            next=f"{sentence} Correct {get_text_list(wrong, 'and')} in answer, as errors and "
            "answer_schema say, and call again with the corrected arguments.",
        )
        return FormRefused(msgspec.json.encode(members).decode())

    @cached_property
    def _entries(self) -> QuerySet[LogEntry]:
        """What the log of the admin says of this user since this was first asked for."""
        entries = LogEntry.objects.filter(user_id=self.rights.principal.user.pk)
        newest = entries.aggregate(newest=Max("pk"))["newest"] or 0
        return entries.filter(pk__gt=newest)

    def _log(self) -> None:
        """Say in the log of the admin that the action ran, where it has not said so itself."""
        if self._declared("mcp_read_only") or self._entries.exists():
            return
        message = f"{self.action.description} ({NOTE}{client_name(self.context)})"
        model = self.exposure.model
        rows = model._base_manager.using(router.db_for_write(model)).filter(pk__in=self.keys)
        LogEntry.objects.log_actions(self.rights.principal.user.pk, rows, CHANGE, message)

    def _done(self, answer: AdminAnswer, page: ActionPage | None, **members: Any) -> ToolResult:
        if answer.kind in (Kind.DONE, Kind.LINK) and not answer.is_error:
            self._log()
        common = {"outcome": answer.kind.value, "link": answer.link}
        encoded = msgspec.json.encode(self._members(page, **{**common, **members}))
        # The address of a file: it cannot be read a second time.
        uri = f"django://actions/{self.exposure.label}/{self.action.name}"
        file = [] if answer.file is None else [answer.file.embedded(uri)]
        return ToolResult(
            content=[TextContent(encoded.decode()), *file],
            is_error=answer.is_error,
            records=len(self.keys),
            model=self.exposure.label,
            keys=self.keys,
        )

    def _members(self, page: ActionPage | None, *, outcome: str, **members: Any) -> dict[str, Any]:
        answer: dict[str, Any] = {"outcome": outcome, "records": len(self.keys)}
        if page is not None and page.text:
            fence = self.rights.fence
            answer["page"] = {"title": fence(page.title), "text": fence(page.text)}
        members["messages"] = messages_as_json(self.rights, self.messages)
        return answer | {
            name: value for name, value in members.items() if value not in ([], {}, "")
        }

    def _declared(self, name: str) -> Any:
        """What the site says of the action with one of its attributes, or None."""
        return getattr(self.action.function, name, None)

    def _value(self, name: str) -> Any:
        return or_default(getattr(self.arguments, name, UNSET))

    def _asked_at(self) -> Literal["start", "page", "never"]:
        """Return when the person is asked: before the action is chosen, or about its page. Staff
        may want more than the site says, and not less.
        """
        declared = self._declared("mcp_confirm")
        decision = self.rights.exposed.decisions.tools.get(self.name)
        if declared or (decision is not None and decision.needs_confirmation):
            return "start"
        if declared is False:
            return "never"
        may_act = not self._declared("mcp_read_only")
        is_risky = self._filters() != Filters() or self._declared("mcp_destructive") is True
        return "start" if may_act and is_risky else "page"

    def _filters(self) -> Filters:
        """How the records are to be found, beside by their keys."""
        names = ("filters", "exclude", "search")
        return Filters(**{name: getattr(self.arguments, name, UNSET) for name in names})

    @cached_property
    def keys(self) -> Sequence[Any]:
        """Raises ToolError unless there are records, all of them there for the caller."""
        place, pks, asked = self.action.place, self._value("pks"), self._filters()
        if place is Place.MODEL_BUTTON:
            return []
        if place is not Place.CHANGELIST:
            return named(self.rights, self.exposure, [self.arguments.pk])
        return selected_keys(self.rights, self.exposure, pks, asked)

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
        post = Post(find=partial(find_related, self.rights))
        for name in form.fields:
            if name in answer:
                fill_in(post, form[name], answer[name])
        return post.pairs

    @cached_property
    def _values(self) -> dict[str, Any] | None:
        """The values for the page, or None without an answer."""
        answer, menu = self._value("answer"), self._menu_form().fields
        return answer and {name: value for name, value in answer.items() if name not in menu}
