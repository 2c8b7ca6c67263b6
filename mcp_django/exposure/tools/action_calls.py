"""One call of an action's tool: choose the records, show what would happen, and have it done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import msgspec
from django.contrib.admin import ModelAdmin
from django.forms import BaseForm
from django.utils.text import get_text_list
from msgspec import UNSET

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.actions import (
    MENU,
    ActionRun,
    AdminAnswer,
    Kind,
)
from mcp_django.exposure.admin_bridge.compat import AdminAction, Place
from mcp_django.exposure.admin_bridge.pages import (
    ActionPage,
    fill_in,
    page_of_form,
    read_action_page,
)
from mcp_django.exposure.admin_bridge.relations import AdminDescriber, related_words
from mcp_django.exposure.admin_bridge.requests import (
    CapturedMessage,
    messages_as_json,
    public_address,
)
from mcp_django.exposure.forms.values import Pair, Post
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.arguments import Filters
from mcp_django.exposure.questions import confirmations
from mcp_django.exposure.questions.conversation import ask_to_agree
from mcp_django.exposure.questions.words import (
    LONGEST_LINES,
    cut_short,
    field_line,
    question,
    record_labels,
    value_lines,
)
from mcp_django.exposure.tools.action_selections import ActionRecords, named, selected_records
from mcp_django.exposure.tools.records import result_of
from mcp_django.protocol.results import ToolResult

#: Fields that a sentence names.
MOST_NAMES = 20
NOT_YET = "Nothing was done yet. If this is wanted, call again with"
ONCE_MORE = "The admin asks again. Correct the answer and call again with"
GOES_ON = (
    "This action goes on with another page of the admin, which only a person can answer: they can "
    "go on at link, where they choose the action again."
)


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

    def run(self) -> ToolResult:
        """Raises ToolError for what cannot be done, in words that say what can."""
        # First: without records nothing else is to be said.
        keys = self.selection.keys
        menu = self._menu_pairs()
        if self._asks_first():
            if (refused := self._refused_early()) is not None:
                return refused
            if self._token is None and not self.context.can_ask:
                way_on = self._way_on(NOT_YET)
                return self._answer("preview", question=self._question(), **way_on)
            self._confirm()
        run = ActionRun(self.context, self.rights, self.model_admin, self.action, keys)
        chosen = run.start(menu)
        page = None
        if chosen.kind is Kind.PAGE:
            page = read_action_page(chosen, run, declared=self._declared("mcp_form"))
        if page is None or page.form is None:
            return self._done(chosen, page, messages=chosen.messages)
        return self._answer_page(page, run, chosen=chosen)

    def _answer_page(self, page: ActionPage, run: ActionRun, *, chosen: AdminAnswer) -> ToolResult:
        """Send the page that the admin has shown, if it has its values and was confirmed."""
        try:
            post = self._post(page)
        except ToolError:
            self._unspend()
            raise
        if post is not None and (errors := page.refusals(post, self.rights)):
            self._unspend()
            return self._refused(errors, page=page, answer=chosen)
        if post is None or not self._is_confirmed(page):
            return self._asked(page, messages=chosen.messages)
        sent = run.send(page.path, post.pairs, post.files)
        messages = [*chosen.messages, *sent.messages]
        following = read_action_page(sent, run) if sent.kind is Kind.PAGE else None
        if following is None or following.form is None:
            return self._done(sent, following, messages=messages)
        if following.repeats(page, self.rights):
            return self._asked_again(page, following, messages=messages)
        goes_on = self._answer(
            "goes on",
            following,
            messages=messages_as_json(messages),
            link=public_address(run.home),
            next=GOES_ON,
        )
        return replace(goes_on, is_error=sent.is_error, records=len(self.selection.keys))

    # Confirmations

    def _is_confirmed(self, page: ActionPage) -> bool:
        """Whether the page may be sent."""
        if self._is_free() or self._asks_first():
            return True
        if self._token is None and not self.context.can_ask:
            return False
        self._confirm(page)
        return True

    def _confirm(self, page: ActionPage | None = None) -> None:
        """Go on only if the person agrees to what was shown, or with a token for it where the
        client cannot ask.
        """
        if self.context.can_ask:
            ask_to_agree(
                self.context,
                self.rights,
                tool=self.tool,
                arguments=self.sent,
                text=self._question(page),
                digest=self._digest(page),
            )
            return
        token = confirmations.read_token(self.rights, self._token)
        arguments = self._token_arguments(has_values=True)
        if token is None or not token.is_for(self.tool, arguments):
            arguments = self._token_arguments(has_values=False)
        confirmations.redeem(
            self.rights,
            self._token,
            tool=self.tool,
            arguments=arguments,
            digest=self._digest(page),
        )

    def _token_arguments(self, *, has_values: bool) -> dict[str, Any]:
        """Return the arguments that a confirmation is for: these records, however they were named,
        what was chosen in the menu, and the values of the page if its question had any.
        """
        arguments = {"records": self.selection.digest, "menu": self._part_of_answer(is_menu=True)}
        return arguments | ({"values": self._values} if has_values else {})

    def _digest(self, page: ActionPage | None) -> str:
        """Of what was shown: the page, or the records where these are confirmed first."""
        return self.selection.digest if page is None or self._asks_first() else page.digest

    def _unspend(self) -> None:
        """Keep the confirmation good for the corrected call: no page was sent."""
        if self._asks_first() and not self.context.can_ask:
            confirmations.unspend(self._token)

    # Questions

    def _question(self, page: ActionPage | None = None) -> str:
        """What a person is asked to agree to."""
        keys = self.selection.keys
        labels = record_labels(self.rights, self.exposure.model, keys) if keys else []
        parts = [] if page is None else [page.statement]
        lines = cut_short("\n".join(self._answer_lines(page)), LONGEST_LINES)
        return question(
            self.action.description, labels=labels, count=len(keys), parts=[*parts, lines]
        )

    def _answer_lines(self, page: ActionPage | None) -> Iterator[str]:
        """The values for the menu and the page, or without a page all values of the answer, by
        the labels of their fields as far as forms are known.
        """
        related = partial(related_words, self.rights)
        form = self._declared("mcp_form")
        forms = [self._menu_form(), *([] if form is None else [form()])]
        for name, value in (self._value("answer") or {}).items():
            known = next((one for one in forms if name in one.fields), None)
            if page is not None and name in page.asks:
                yield from page.answer_lines({name: value}, self.rights)
            elif known is not None:
                yield field_line(known[name], value, related=related)
            elif page is None:
                yield value_lines({name: value})

    # Answers

    def _asked(self, page: ActionPage, *, messages: Sequence[CapturedMessage]) -> ToolResult:
        """Show the page that is to be confirmed, or that values are missing for."""
        is_settled = self._asks_first() or not self._needs_token()
        return self._answer(
            "asks",
            page,
            question="" if is_settled else self._question(page),
            messages=messages_as_json(messages),
            **self._way_on(NOT_YET, page),
        )

    def _asked_again(
        self, page: ActionPage, again: ActionPage, *, messages: Sequence[CapturedMessage]
    ) -> ToolResult:
        """What the admin finds wrong with values that were sent to it."""
        answer = self._answer(
            "asks again",
            again,
            errors=again.errors(self.rights),
            messages=messages_as_json(messages),
            **self._way_on(ONCE_MORE, page, is_wrong=True),
        )
        return replace(answer, is_error=True)

    def _refused(
        self, errors: Mapping[str, Any], *, page: ActionPage, answer: AdminAnswer | None = None
    ) -> ToolResult:
        """Say what the form of a page finds wrong, before anybody confirms it. `answer` is that
        of the admin if it has shown the page.
        """
        # A rule over several fields may name none: then all.
        wrong = [name for name in errors if name] or list(page.asks)[:MOST_NAMES]
        token = "" if self._token is None else " and the same confirmation"
        refused = self._answer(
            "asks again",
            None if answer is None else page,
            errors=errors,
            messages=messages_as_json(() if answer is None else answer.messages),
            answer_schema=page.schema,
            next=f"Nothing was done. Correct {get_text_list(wrong, 'and')} in answer, as errors "
            f"and answer_schema say, and call again with the corrected arguments{token}.",
        )
        return replace(refused, is_error=True)

    def _refused_early(self) -> ToolResult | None:
        """What a declared form finds wrong, where a person is asked before its page is shown."""
        form, values = self._declared("mcp_form"), self._values
        if form is None or not values:
            return None
        page = page_of_form(form(), self.rights)
        page.check(values)
        errors = page.refusals(page.post(values, self.rights), self.rights)
        return self._refused(errors, page=page) if errors else None

    def _done(
        self, answer: AdminAnswer, page: ActionPage | None, *, messages: Sequence[CapturedMessage]
    ) -> ToolResult:
        told = self._answer(
            answer.kind.value, page, messages=messages_as_json(messages), link=answer.link
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

    def _way_on(
        self, sentence: str, page: ActionPage | None = None, *, is_wrong: bool = False
    ) -> dict[str, Any]:
        """How to have done what is shown: a page, or without one the records, with the schema of
        a declared form. With `is_wrong` the values for the page have to change.
        """
        members: dict[str, Any] = {"first": msgspec.Raw(self.selection.samples)}
        needed = ["the same arguments"]
        has_values = bool(self._values) and not is_wrong
        if page is not None:
            schema = page.schema if page.asks else None
        else:
            form = self._declared("mcp_form")
            schema = None if form is None else declared_schema(form, self.rights)
        if schema is not None:
            members["answer_schema"] = schema
            if not has_values:
                needed.append("an answer that fits answer_schema")
        if self._needs_token():
            members[confirmations.ARGUMENT] = confirmations.issue(
                self.rights,
                tool=self.tool,
                arguments=self._token_arguments(has_values=has_values),
                digest=self._digest(page),
            )
            needed.append("this confirmation")
        return {**members, "next": f"{sentence} {get_text_list(needed, 'and')}."}

    def _needs_token(self) -> bool:
        return not (self._is_free() or self.context.can_ask)

    def _answer(self, outcome: str, page: ActionPage | None = None, **members: Any) -> ToolResult:
        told: dict[str, Any] = {"outcome": outcome, "records": len(self.selection.keys)}
        if page is not None:
            told["page"] = {"title": page.title, "text": page.text}
        told |= {name: value for name, value in members.items() if value not in ([], {}, "")}
        return result_of(msgspec.json.encode(told))

    def _post(self, page: ActionPage) -> Post | None:
        """What is sent of a page, or None while something is missing that it asks for.

        Raises ToolError for an answer that does not fit.
        """
        if self._values is not None:
            page.check(self._values)
        elif page.required:
            return None
        return page.post(self._values or {}, self.rights)

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
        if self._declared("mcp_read_only"):
            return False
        return self._filters() != Filters() or self._declared("mcp_destructive") is True

    def _filters(self) -> Filters:
        """How the records are to be found, beside by their keys."""
        names = ("filters", "exclude", "search")
        return Filters(**{name: getattr(self.given, name, UNSET) for name in names})

    @cached_property
    def selection(self) -> ActionRecords:
        """Raises ToolError unless there are records, all of them there for the caller."""
        place, pks, asked = self.action.place, self._value("pks"), self._filters()
        if place is Place.MODEL_BUTTON:
            return ActionRecords(keys=[])
        if place is not Place.CHANGELIST:
            return named(self.rights, self.exposure, [self.given.pk])
        return selected_records(self.rights, self.exposure, pks, asked)

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
        post = Post(user=self.rights.principal.user)
        for name in form.fields:
            if name in answer:
                fill_in(post, form[name], answer[name], rights=self.rights)
        return post.pairs

    @cached_property
    def _values(self) -> dict[str, Any] | None:
        """The values for the page, or None without an answer."""
        return None if self._value("answer") is None else self._part_of_answer(is_menu=False)

    def _part_of_answer(self, *, is_menu: bool) -> dict[str, Any]:
        answer, menu = self._value("answer") or {}, self._menu_form().fields
        return {name: value for name, value in answer.items() if (name in menu) is is_menu}


def declared_schema(form: type[BaseForm], rights: Rights) -> dict[str, Any]:
    """What the form takes that an action declares. The answer may have fields of the menu, too."""
    schema = AdminDescriber(rights).form(form())
    return {name: value for name, value in schema.items() if name != "additionalProperties"}
