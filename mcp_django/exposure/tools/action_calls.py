"""One call of an action's tool: choose the records, show what would happen, and have it done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import msgspec
from django.contrib.admin import ModelAdmin
from django.utils.text import get_text_list
from msgspec import UNSET

from mcp_django.context import CallContext
from mcp_django.exceptions import Declined, InputNeeded, ToolError
from mcp_django.exposure.admin_bridge.actions import (
    MENU,
    ActionRun,
    AdminAnswer,
    Kind,
)
from mcp_django.exposure.admin_bridge.compat import AdminAction, Place
from mcp_django.exposure.admin_bridge.pages import (
    ActionPage,
    check_value,
    fill_in,
    page_of_form,
    read_action_page,
)
from mcp_django.exposure.admin_bridge.relations import AdminDescriber, related_words
from mcp_django.exposure.admin_bridge.requests import messages_as_json
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
from mcp_django.exposure.tools.action_pages import (
    MOST_PAGES,
    PageAnswers,
    PageWalk,
    declared_schema,
    later_schema,
    names_to_correct,
)
from mcp_django.exposure.tools.action_selections import Selection, named, selected_records
from mcp_django.exposure.tools.records import result_of
from mcp_django.protocol.results import ToolResult

NOT_YET = "Nothing was done yet. If this is wanted, call again with"
REST_WANTED = "If the rest is wanted, call again with"
ONCE_MORE = "The admin asks again. Correct the answer and call again with"
TOO_MANY_PAGES = (
    f"The action shows more than {MOST_PAGES} pages, which is the most for one call. "
    "Tell the person to run it in the admin."
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

    def check(self, answer_schema: dict[str, Any] | None) -> Selection:
        """The records. Raises ToolError where these arguments would be refused before the action
        is run. `answer_schema` is that of a declared form.
        """
        self._menu_pairs()
        answer = self._answers.get(1)
        if answer and answer_schema is not None:
            check_value("answer", dict(answer), answer_schema)
        return self.selection

    def run(self) -> ToolResult:
        """Raises ToolError for what cannot be done, in words that say what can."""
        # First: without records nothing else is to be said.
        digest = self.selection.digest
        menu = self._menu_pairs()
        walk = PageWalk()
        if self._asks_first():
            if (refused := self._refused_early(walk)) is not None:
                return refused
            if self._token is None and not self.context.can_ask:
                form = self._declared("mcp_form")
                schema = None if form is None else declared_schema(form, self.rights)
                members = self._way_on(NOT_YET, walk, schema=schema)
                return self._answer("preview", question=self._question(walk), **members)
            self._confirm(walk, shown=digest, arguments=self._confirmed_records())
        run = self._run()
        with run.whole(is_over=lambda: walk.is_over):
            answer = run.start(menu)
            page = self._read(answer, run) if answer.kind is Kind.PAGE else None
            walk.messages += answer.messages
            if page is None or page.form is None:
                return self._done(walk, answer, page)
            return self._send_pages(run, walk, page)

    # Pages, one after the other

    def _send_pages(self, run: ActionRun, walk: PageWalk, page: ActionPage) -> ToolResult:
        """Send a page and those that follow, as far as they have values and were confirmed."""
        walk.first_digest = page.digest
        confirmed = self._confirmed_page(walk)
        if confirmed > 1:
            # Before the pages that it proves: they are sent once for a token.
            self._redeem(walk, shown=None, arguments=self._matching_arguments(walk, confirmed))
        while True:
            walk.pages.append(page)
            post = self._checked_post(walk)
            if post is not None and (errors := page.refusals(post, self.rights)):
                return self._refused(walk, errors)
            if post is None or not self._is_confirmed(walk, confirmed):
                return self._asked(walk)
            sent = self._sent(run, walk, post)
            following = None
            if sent.kind is Kind.PAGE:
                following = self._read(sent, run, number=page.number + 1)
            if following is None or following.form is None:
                return self._done(walk, sent, following)
            if following.repeats(page, self.rights):
                return self._asked_again(walk, following)
            if page.number == MOST_PAGES:
                raise ToolError(self._and_written(TOO_MANY_PAGES, walk))
            page = following

    def _checked_post(self, walk: PageWalk) -> Post | None:
        try:
            return self._post(walk.page)
        except ToolError as error:
            self._unspend(walk)
            raise ToolError(self._and_written(str(error), walk)) from None

    def _sent(self, run: ActionRun, walk: PageWalk, post: Post) -> AdminAnswer:
        page = walk.page
        try:
            with walk.written.recording(run.lasting()):
                sent = run.send(page.path, post.pairs, post.files)
        except ToolError as error:
            if walk.written:
                raise ToolError(self._and_written(str(error), walk)) from error
            raise
        walk.messages += sent.messages
        return sent

    def _is_confirmed(self, walk: PageWalk, confirmed: int) -> bool:
        """Whether the page may be sent. `confirmed` is the number of the page that the call
        confirms; those before it were confirmed by earlier calls.
        """
        number = walk.page.number
        if self._is_free() or self._asks_first() or number < confirmed:
            return True
        if number > confirmed:
            return False
        if self.context.can_ask or (number == 1 and self._token is not None):
            arguments = self._matching_arguments(walk, number)
            self._confirm(walk, shown=walk.digest, arguments=arguments)
            return True
        token = confirmations.read_token(self.rights, self._token)
        return number > 1 and token is not None and token.shows(walk.digest)

    def _confirmed_page(self, walk: PageWalk) -> int:
        """The number of the page that the confirmation of this call came with, and 1 if there is
        none, or one for another call.
        """
        token = confirmations.read_token(self.rights, self._token)
        if token is None or self._is_free() or self._asks_first():
            return 1
        for number in range(self._answers.last + 1, 1, -1):
            if token.is_for(self.tool, self._matching_arguments(walk, number)):
                return number
        return 1

    def _matching_arguments(self, walk: PageWalk, number: int) -> dict[str, Any]:
        """The arguments that a confirmation of a page is for: a page that was shown with values
        was confirmed with these, another one with any.
        """
        token = confirmations.read_token(self.rights, self._token)
        arguments = self._token_arguments(walk, number, has_values=True)
        if token is not None and token.is_for(self.tool, arguments):
            return arguments
        return self._token_arguments(walk, number)

    def _token_arguments(
        self, walk: PageWalk, number: int = 1, *, has_values: bool = False
    ) -> dict[str, Any]:
        """These records, however they were named, the first page, and the values of all pages
        before this one.
        """
        arguments: dict[str, Any] = {"records": self.selection.digest}
        if number > 1:
            arguments["page"] = walk.first_digest
            arguments["before"] = self._answers.before(number)
        if has_values:
            arguments["values"] = self._answers.get(number)
        if self.context.can_ask:
            # Nobody but the person made this one: it spares no question that was not asked.
            arguments["agreed"] = True
        return arguments

    def _confirmed_records(self) -> dict[str, Any]:
        """The arguments that a confirmation of the records is for: where its question had the
        values of pages, these values, and any for pages after them.
        """
        token = confirmations.read_token(self.rights, self._token)
        for pages in range(self._answers.last, 0, -1):
            arguments = self._records_arguments(pages)
            if token is not None and token.is_for(self.tool, arguments):
                return arguments
        return self._records_arguments(0)

    def _records_arguments(self, pages: int) -> dict[str, Any]:
        """These records, however they were named, and the values of so many pages."""
        arguments: dict[str, Any] = {"records": self.selection.digest}
        return arguments | ({"values": self._answers.before(pages + 1)} if pages else {})

    def _confirm(self, walk: PageWalk, *, shown: str, arguments: Mapping[str, Any]) -> None:
        """Go on only if the person agrees to what was shown, or with a token for it where the
        client cannot ask.
        """
        if not self.context.can_ask:
            self._redeem(walk, shown=shown, arguments=arguments)
            return
        try:
            ask_to_agree(
                self.context,
                self.rights,
                tool=self.tool,
                arguments=self.sent,
                text=self._question(walk),
                digest=shown,
            )
        except InputNeeded:
            # The same call comes again, with what the person says.
            if walk.spent is not None:
                confirmations.unspend(walk.spent)
            raise
        except Declined as declined:
            if walk.written:
                outcome = self._and_written("", walk)
                raise Declined(is_explicit=declined.is_explicit, outcome=outcome) from None
            raise

    def _redeem(self, walk: PageWalk, *, shown: str | None, arguments: Mapping[str, Any]) -> None:
        confirmations.redeem(
            self.rights, self._token, tool=self.tool, arguments=arguments, digest=shown
        )
        walk.spent = self._token

    def _unspend(self, walk: PageWalk) -> None:
        """Keep the confirmation good for the corrected call, if nothing came of it."""
        if walk.spent is not None and not walk.written:
            confirmations.unspend(walk.spent)
            walk.spent = None

    def _and_written(self, sentence: str, walk: PageWalk) -> str:
        """The sentence, and what the pages that were sent have changed already."""
        if not walk.written:
            return sentence
        labels = walk.written.labels(self.rights)
        of_models = f" of {get_text_list(labels, 'and')}" if labels else ""
        return f"{sentence} The pages that were sent changed records{of_models} already.".lstrip()

    # Questions

    def _question(self, walk: PageWalk) -> str:
        """What a person is asked to agree to."""
        keys = self.selection.keys
        labels = record_labels(self.rights, self.exposure.model, keys) if keys else []
        parts = [walk.page.statement] if walk.pages else []
        lines = cut_short("\n".join(self._answer_lines(walk.pages)), LONGEST_LINES)
        return question(
            self.action.description, labels=labels, count=len(keys), parts=[*parts, lines]
        )

    def _answer_lines(self, pages: Sequence[ActionPage]) -> Iterator[str]:
        """The values of the pages, or without pages all values of the answer, by the labels of
        their fields as far as forms are known.
        """
        related = partial(related_words, self.rights)
        form = self._declared("mcp_form")
        forms = [self._menu_form(), *([] if form is None else [form()])]
        asked = [name for page in pages[:1] for name in page.asks]
        for name, value in (self._value("answer") or {}).items():
            known = next((one for one in forms if name in one.fields), None)
            if name in asked:
                yield from pages[0].answer_lines({name: value}, self.rights)
            elif known is not None:
                yield field_line(known[name], value, related=related)
            elif not pages:
                yield value_lines({name: value})
        for page in pages[1:]:
            yield from page.answer_lines(self._answers.get(page.number) or {}, self.rights)

    # Answers

    def _asked(self, walk: PageWalk) -> ToolResult:
        """Show the page that is to be confirmed, or that values are missing for."""
        page = walk.page
        is_settled = self._is_free() or self._asks_first() or self.context.can_ask
        asked = "" if is_settled else self._question(walk)
        sentence = self._and_written("", walk)
        sentence = f"{sentence} {REST_WANTED}" if sentence else NOT_YET
        return self._answer(
            "asks",
            page,
            question=asked,
            messages=messages_as_json(walk.messages),
            **self._kept(walk),
            **self._way_on(sentence, walk, page=page),
        )

    def _asked_again(self, walk: PageWalk, again: ActionPage) -> ToolResult:
        """What the admin finds wrong with values that were sent to it."""
        asked = walk.page
        page = replace(again, number=asked.number, asks=asked.asks, required=asked.required)
        answer = self._answer(
            "asks again",
            page,
            errors=again.errors(self.rights),
            messages=messages_as_json(walk.messages),
            **self._kept(walk),
            **self._way_on(self._and_written(ONCE_MORE, walk), walk, page=page, is_wrong=True),
        )
        return replace(answer, is_error=True)

    def _refused(
        self, walk: PageWalk, errors: Mapping[str, Any], *, page: ActionPage | None = None
    ) -> ToolResult:
        """Say what the form of a page finds wrong, before anybody confirms it."""
        self._unspend(walk)
        shown, page = page is None, page or walk.page
        names = get_text_list(list(map(str, names_to_correct(page, errors))), "and")
        is_good = walk.spent is None and self._token is not None
        token = " and the same confirmation" if is_good else ""
        nothing = self._and_written("", walk) or "Nothing was done."
        answer = self._answer(
            "asks again",
            page if shown else None,
            errors=errors,
            messages=messages_as_json(walk.messages),
            **self._kept(walk),
            answer_schema=later_schema(page),
            next=f"{nothing} Correct {names} in {page.place}, as errors and answer_schema say, "
            f"and call again with the corrected arguments{token}.",
        )
        return replace(answer, is_error=True)

    def _refused_early(self, walk: PageWalk) -> ToolResult | None:
        """What a declared form finds wrong, where a person is asked before its page is shown."""
        form, values = self._declared("mcp_form"), self._answers.get(1)
        if form is None or not values:
            return None
        page = page_of_form(form(), self.rights)
        page.check(values)
        errors = page.refusals(page.post(values, self.rights), self.rights)
        return self._refused(walk, errors, page=page) if errors else None

    def _kept(self, walk: PageWalk) -> dict[str, Any]:
        """What is known of the pages before the last one, whose values go with the next call."""
        return {
            "kept": self._answers.names_before(walk.page.number) if walk.pages else [],
            "changed": walk.written.labels(self.rights),
        }

    def _done(
        self, walk: PageWalk, answer: AdminAnswer, page: ActionPage | None = None
    ) -> ToolResult:
        walk.is_over = True
        last = walk.page.number if walk.pages else 1
        unused = get_text_list(self._answers.after(last), "and")
        told = self._answer(
            answer.kind.value,
            page,
            messages=messages_as_json(walk.messages),
            link=answer.link,
            note=f"There was no page for {unused} in answer: these values were not used."
            if unused
            else "",
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
        self,
        sentence: str,
        walk: PageWalk,
        *,
        page: ActionPage | None = None,
        schema: dict[str, Any] | None = None,
        is_wrong: bool = False,
    ) -> dict[str, Any]:
        """How to have done what is shown: a page, or without one the records, with the schema of
        a declared form. With `is_wrong` the values for the page have to change.
        """
        members: dict[str, Any] = {"first": msgspec.Raw(self.selection.samples)}
        needed = ["the same arguments"]
        number = 1 if page is None else page.number
        has_values = page is not None and bool(self._answers.get(number)) and not is_wrong
        if page is not None:
            # Where no token tells that a page was seen, only its member does.
            has_schema = bool(page.asks) or (number > 1 and self._asks_first())
            schema = later_schema(page) if has_schema else None
        if schema is not None:
            members["answer_schema"] = schema
            if not has_values:
                what = "an answer" if number == 1 else f"page_{number} in answer"
                needed.append(f"{what} that fits answer_schema")
        if self._needs_token(number):
            members[confirmations.ARGUMENT] = self._new_token(walk, number, has_values=has_values)
            needed.append("this confirmation")
        return {**members, "next": f"{sentence} {get_text_list(needed, 'and')}."}

    def _needs_token(self, number: int) -> bool:
        """Whether the next call needs a token for this page. A client that can ask its person
        needs one for what the person has agreed to, which nobody asks again.
        """
        is_asked = self.context.can_ask and (number == 1 or self._asks_first())
        return not (self._is_free() or is_asked)

    def _new_token(self, walk: PageWalk, number: int, *, has_values: bool) -> str:
        if self._asks_first():
            # The question had these values, but those of the last page may have to change.
            pages = self._answers.last if self._value("answer") else 0
            if walk.pages:
                pages = number if has_values else number - 1
            arguments, shown = self._records_arguments(pages), self.selection.digest
        else:
            arguments = self._token_arguments(walk, number, has_values=has_values)
            shown = walk.digest
        return confirmations.issue(self.rights, tool=self.tool, arguments=arguments, digest=shown)

    def _answer(self, outcome: str, page: ActionPage | None = None, **members: Any) -> ToolResult:
        told: dict[str, Any] = {"outcome": outcome, "records": len(self.selection.keys)}
        if page is not None:
            number = {"number": page.number} if page.number > 1 else {}
            told["page"] = {**number, "title": page.title, "text": page.text}
        told |= {name: value for name, value in members.items() if value not in ([], {}, "")}
        return result_of(msgspec.json.encode(told))

    def _run(self) -> ActionRun:
        return ActionRun(
            self.context, self.rights, self.model_admin, self.action, self.selection.keys
        )

    def _read(self, answer: AdminAnswer, run: ActionRun, number: int = 1) -> ActionPage:
        # A declared form is that of the first page.
        declared = self._declared("mcp_form") if number == 1 else None
        return read_action_page(answer, run, declared=declared, number=number)

    def _post(self, page: ActionPage) -> Post | None:
        """What is sent of a page, or None while something is missing that it asks for.

        Raises ToolError for an answer that does not fit.
        """
        values = self._answers.get(page.number)
        if values is not None:
            page.check(values)
        # Without tokens for pages, only a member of the answer tells that a page was seen.
        is_unseen = page.number > 1 and self._asks_first()
        if values is None and (page.required or is_unseen):
            return None
        return page.post(values or {}, self.rights)

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
    def selection(self) -> Selection:
        """Raises ToolError unless there are records, all of them there for the caller."""
        place, pks, asked = self.action.place, self._value("pks"), self._filters()
        if place is Place.MODEL_BUTTON:
            return Selection(keys=[])
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
    def _answers(self) -> PageAnswers:
        return PageAnswers.of_call(self._value("answer"), menu=self._menu_form().fields)
