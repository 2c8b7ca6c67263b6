"""One call of an action's tool: choose the records, show what would happen, and have it done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from django.contrib.admin import ModelAdmin
from msgspec import UNSET

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure import confirmations
from mcp_django.exposure.action_replies import Replies
from mcp_django.exposure.action_selections import QUERIES, Selection, filtered, named
from mcp_django.exposure.admin_action_answers import AdminAnswer, Kind
from mcp_django.exposure.admin_action_pages import ActionPage, Post, read_action_page
from mcp_django.exposure.admin_actions import MENU, ActionRun, Pairs
from mcp_django.exposure.admin_dry_runs import dry_run
from mcp_django.exposure.admin_form_schemas import form_schema
from mcp_django.exposure.compat import AdminAction, Place
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.questions import Conversation
from mcp_django.protocol.results import ToolResult


@dataclass(frozen=True, kw_only=True, eq=False)
class ActionCall:
    """What is confirmed depends on the action. Where records are shown before it is chosen, a
    confirmation is for these records; else for the page that came, and for its records.
    """

    context: CallContext
    rights: Rights
    tool: str
    action: AdminAction
    exposure: ModelExposure
    model_admin: ModelAdmin[Any]
    given: Mapping[str, Any]
    #: The same as they were sent: an answer of a person is for these.
    sent: Mapping[str, Any]

    def answer(self) -> ToolResult:
        """Raises ToolError for what cannot be done, in words that say what can."""
        selection = self._select()
        menu = self._menu_pairs()
        replies = Replies(
            rights=self.rights,
            tool=self.tool,
            uri=f"django://actions/{self.exposure.label}/{self.action.name}",
            selection=selection,
            is_free=self._is_free(),
        )
        if self._value("dry_run"):
            return self._tried(replies, menu)
        if self._asks_first():
            if self._token is None and not self.context.can_ask:
                form = self._declared("mcp_form")
                schema = None if form is None else form_schema(form(), rights=self.rights)
                return replies.preview(schema=schema, shown=selection.digest)
            self._confirm(replies, shown=selection.digest)
        run = self._run(selection)
        answer = run.start(menu)
        if answer.kind is not Kind.PAGE:
            return replies.done(answer)
        page = self._read(answer, run)
        return replies.done(answer, page) if page.form is None else self._turn(replies, run, page)

    def _turn(self, replies: Replies, run: ActionRun, page: ActionPage) -> ToolResult:
        """Show a page, or send it where that was confirmed."""
        shown = replies.selection.digest if self._asks_first() else page.digest
        post = self._post(page)
        is_free = self._is_free() or self._asks_first()
        is_confirmed = is_free or self._token is not None or self.context.can_ask
        if post is None or not is_confirmed:
            return replies.page(page, shown=shown)
        if not is_free:
            self._confirm(replies, shown=shown, page=page)
        sent = run.send(page.path, post.pairs, post.files)
        if sent.kind is not Kind.PAGE:
            return replies.done(sent)
        # The next call starts with the first page again.
        return replies.page_again(self._read(sent, run), sent, shown=shown)

    def _confirm(self, replies: Replies, *, shown: str, page: ActionPage | None = None) -> None:
        """Go on only with a confirmation of what was shown: a token, or a person who agrees."""
        if self._token is not None:
            replies.redeem(self._token, shown=shown)
            return
        conversation = Conversation(
            self.context,
            self.rights,
            method="tools/call",
            name=self.tool,
            arguments=self.sent,
            is_single_use=True,
        )
        text = replies.question(self.action.description, page, self._value("answer"))
        conversation.confirm(text, key=confirmations.ARGUMENT, digest=shown)

    def _tried(self, replies: Replies, menu: Pairs) -> ToolResult:
        """Do all of it and take it back, which needs no confirmation."""
        model, page = self.exposure.model, None
        run = self._run(replies.selection, is_tried=True)
        with dry_run(self.rights, watch=((model, key) for key in run.given)) as difference:
            answer = run.start(menu)
            page = self._read(answer, run) if answer.kind is Kind.PAGE else None
            post = None if page is None or page.form is None else self._post(page)
            if page is not None and post is not None:
                answer = run.send(page.path, post.pairs, post.files)
                page = self._read(answer, run) if answer.kind is Kind.PAGE else None
        return replies.tried(answer, page, difference.as_json())

    def _run(self, selection: Selection, *, is_tried: bool = False) -> ActionRun:
        return ActionRun(
            self.context,
            self.rights,
            self.model_admin,
            self.action,
            selection.keys,
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
        value = self.given.get(name, UNSET)
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
        return bool(self._query()) and not self._declared("mcp_read_only")

    def _query(self) -> dict[str, Any]:
        """How the records are to be found. Empty where nothing says so."""
        return {name: self.given[name] for name in QUERIES if self._value(name) is not None}

    def _select(self) -> Selection:
        """Raises ToolError unless there are records, all of them there for the caller."""
        place, pks, query = self.action.place, self._value("pks"), self._query()
        if place is Place.MODEL_BUTTON:
            return Selection(keys=[])
        if place is not Place.CHANGELIST:
            return named(self.rights, self.exposure, [self.given["pk"]])
        if (pks is None) == (not query):
            raise ToolError('Name the records: by "pks", or by "filters", "exclude", "search".')
        if pks is not None:
            return named(self.rights, self.exposure, pks)
        return filtered(self.rights, self.exposure, query)

    # The form of the menu: some sites have more in it than the action.

    def _menu_form(self) -> Any:
        prefix = "CHANGE_FORM" if self.action.place is Place.CHANGE_FORM else None
        form = self.model_admin.action_form(auto_id=False, prefix=prefix)
        for name in MENU.intersection(form.fields):
            del form.fields[name]
        return form

    def _menu_pairs(self) -> Pairs:
        form, answer = self._menu_form(), self._value("answer") or {}
        missing = [
            name for name, field in form.fields.items() if field.required and name not in answer
        ]
        if missing:
            schema = msgspec.json.encode(form_schema(form, rights=self.rights)).decode()
            raise ToolError(f"answer: missing {', '.join(missing)}. It takes: {schema}")
        post = Post()
        for name in form.fields:
            if name in answer:
                post.fill_in(form[name], answer[name], self.rights)
        return post.pairs

    def _page_answer(self) -> dict[str, Any] | None:
        answer = self._value("answer")
        if answer is None:
            return None
        menu = self._menu_form().fields
        return {name: value for name, value in answer.items() if name not in menu}
