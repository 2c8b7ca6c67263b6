"""The questions of one call: which have an answer, and which the call has to end for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from mcp_django.context import CallContext
from mcp_django.exceptions import Declined, InputNeeded, ToolError, Unconfirmed
from mcp_django.exposure import confirmations
from mcp_django.exposure.function_results import plain_block, plain_text
from mcp_django.exposure.question_forms import AskedForm, ConfirmForm
from mcp_django.exposure.question_pages import checked_url
from mcp_django.exposure.question_states import Answer, State, digest_of, open_state
from mcp_django.protocol.content import AudioContent, ImageContent, TextContent
from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.questions import (
    ELICITATION,
    ROOTS,
    SAMPLING,
    URL,
    Question,
    missing_capability,
    read_form,
    read_roots,
    read_sampled,
    takes,
)
from mcp_django.protocol.render_content import content
from mcp_django.protocol.results import InputRequired, PromptMessage

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

    from mcp_django.exposure.permissions import Rights

USED = (
    "The answers to these questions were used already. Look at what came of it. "
    "To do it once more, make the call again from its start."
)
UNASKABLE = (
    "This has to ask the person something first, and this client cannot be asked here. "
    "Use a client that speaks MCP 2026-07-28, or one that keeps a session and sends no batches."
)
NO_FORMS = (
    "This has to ask the person something first, and this client cannot do that. "
    "Use a client that speaks MCP 2025-06-18 or newer."
)
NO_PAGES = (
    "This has to send the person to a page first, and this client cannot do that. "
    "Use a client that speaks MCP 2025-11-25 or newer."
)
LACKING = (
    "This has to ask the client first, and it did not declare in its handshake that it answers "
    "{what}. Go on without this tool, or tell the person so."
)
UNCONFIRMED = (
    "{text}\n\nNothing was changed yet. Show this to the person. Only if they agree, call {tool} "
    'again with the same arguments and "{argument}": "{token}".'
)
TOO_LONG = (
    "The answers so far are too long to go on with. Make the call again, and have the person "
    "answer with less."
)
SILENT = "This client has no sounds for its model. Use one that speaks MCP 2025-03-26 or newer."
LONGEST_KEY = 64


class Conversation:
    """Asks the client of one call by ending it: it comes again, with the answers so far."""

    def __init__(
        self,
        context: CallContext,
        rights: Rights,
        *,
        method: str,
        name: str,
        arguments: Mapping[str, Any],
        is_single_use: bool = False,
    ) -> None:
        """Raises ProtocolError for a state that is not of this caller and this request.

        With `is_single_use` no answer is good for a second call.
        """
        self.context = context
        self.rights = rights
        self.method = method
        self.name = name
        self.arguments = arguments
        self.is_single_use = is_single_use
        self._bound_to = f"{rights.identity}:{digest_of(method, name, arguments)}"
        sent = context.sent_input
        self._state: State | None = None
        self._given = {key: Answer(question=None, value=one) for key, one in sent.answers.items()}
        if sent.state is not None:
            self._state = open_state(sent.state, bound_to=self._bound_to)
            self._given = answers_of(self._state, sent.answers)
        #: By key, what this run has asked for, answered or not.
        self._asked: dict[str, str] = {}
        self._open: dict[str, Question] = {}
        self._ended: Exception | None = None
        self._is_gathering = False
        self._is_spent = False
        self._has_confirmed = False

    # What code of the site calls, through its context

    def ask(self, key: str, form: Any, *, message: _StrOrPromise) -> Any:
        asked = AskedForm(form, features=self.context.revision.features)
        said = plain_text(message) or f"{self.name} needs an answer."
        question = form_question(said, asked)
        answer = self._answer(key, question, read_form)
        if answer is None:
            return self._need(key, question)
        if answer.action != "accept":
            self._take(key)
            raise Declined(is_explicit=answer.action == "decline")
        if not asked.is_valid(answer.content or {}):
            return self._need(key, form_question(f"{said}\n\n{asked.faults()}", asked))
        self._take(key)
        return asked.form.cleaned_data

    def ask_url(self, key: str, url: str, *, message: _StrOrPromise) -> None:
        said = plain_text(message) or f"{self.name} needs you to open a page."
        params = {"mode": "url", "message": said, "url": checked_url(url)}
        answer = self._ask_for(key, Question(method=ELICITATION, params=params), read_form)
        if answer is not None and answer.action != "accept":
            raise Declined(is_explicit=answer.action == "decline")

    def confirm(self, text: _StrOrPromise, *, key: str, digest: str) -> None:
        if self._has_confirmed:
            raise RuntimeError("A call confirms once. Say all of it in one text.")
        self._has_confirmed = True
        if not self.context.can_ask and self.method == "tools/call":
            self._confirm_by_token(plain_text(text), shown=digest_of(plain_text(text), digest))
            return
        asked = AskedForm(ConfirmForm, features=self.context.revision.features)
        question = form_question(plain_text(text), asked)
        answer = self._answer(key, question, read_form, digest=digest, needs_state=True)
        if answer is None:
            self._need(key, question)
            return
        is_yes = answer.action == "accept" and asked.is_valid(answer.content or {})
        if not is_yes or not asked.form.cleaned_data["confirm"]:
            self._take(key)
            raise Declined(is_explicit=answer.action != "cancel")
        self._take(key, once=True)

    def sample(
        self, key: str, messages: Sequence[str | PromptMessage], *, options: Mapping[str, Any]
    ) -> Any:
        said = [self._message(one) for one in messages]
        question = Question(method=SAMPLING, params={"messages": said, **options})
        return self._ask_for(key, question, read_sampled)

    def roots(self, key: str) -> Any:
        return self._ask_for(key, Question(method=ROOTS), read_roots)

    @contextmanager
    def together(self) -> Iterator[None]:
        self._is_gathering = True
        try:
            yield
        except BaseException:
            self._open.clear()
            raise
        finally:
            self._is_gathering = False
        if self._open:
            raise self._end()

    def settle(self) -> None:
        if self._ended is not None:
            raise self._ended

    def release(self) -> None:
        """Take back that the answers were used: there was no transaction to do it."""
        if self._is_spent and self._state is not None:
            confirmations.unspend(self._state.nonce)

    # What has an answer

    def _ask_for(self, key: str, question: Question, read: Callable[[Any], Any]) -> Any:
        answer = self._answer(key, question, read)
        if answer is None:
            return self._need(key, question)
        self._take(key)
        return answer

    def _answer(
        self,
        key: str,
        question: Question,
        read: Callable[[Any], Any],
        *,
        digest: str = "",
        needs_state: bool = False,
    ) -> Any:
        """What came back for exactly this question. None: nothing, or no answer to it."""
        if not 0 < len(key) <= LONGEST_KEY:
            raise ValueError(f"The key of a question has 1 to {LONGEST_KEY} characters.")
        wanted = digest_of(question.as_wire(), digest)
        if self._asked.setdefault(key, wanted) != wanted:
            raise RuntimeError(f"Two questions of one call have the key {key!r}.")
        given = self._given.get(key)
        if given is None:
            return None
        if given.question is None:
            # Nobody knows what it was an answer to.
            fits = not (needs_state or self.is_single_use)
        else:
            fits = given.question == wanted
        return read(given.value) if fits else None

    def _take(self, key: str, *, once: bool = False) -> None:
        """Use an answer. It goes on with the call, through all questions that follow."""
        self._given[key] = replace(self._given[key], question=self._asked[key])
        if not (once or self.is_single_use) or self._is_spent or self._state is None:
            return
        if not confirmations.spend(self._state.nonce, expires_at=self._state.ends_at):
            self._ended = ToolError(USED)
            raise self._ended
        self._is_spent = True

    def _confirm_by_token(self, text: str, *, shown: str) -> None:
        arguments = confirmations.without_token(self.arguments)
        call: dict[str, Any] = {"tool": self.name, "arguments": arguments, "digest": shown}
        token = self.arguments.get(confirmations.ARGUMENT)
        if token is None:
            token = confirmations.issue(self.rights, **call)
            self._ended = Unconfirmed(
                UNCONFIRMED.format(
                    text=text, tool=self.name, argument=confirmations.ARGUMENT, token=token
                )
            )
            raise self._ended
        try:
            confirmations.redeem(self.rights, token, **call)
        except ToolError as error:
            self._ended = error
            raise

    # What has none

    def _need(self, key: str, question: Question) -> None:
        self._given.pop(key, None)
        self._open[key] = question
        if not self._is_gathering:
            raise self._end()

    def _end(self) -> Exception:
        """Why the call ends here: the questions, or that the client cannot be asked them."""
        self._ended = self._ending()
        return self._ended

    def _ending(self) -> Exception:
        if not self.context.is_reachable:
            return ToolError(UNASKABLE)
        features = self.context.revision.features
        needed = {one.needs for one in self._open.values()}
        if ELICITATION in needed and not features.elicitation:
            return ToolError(NO_FORMS)
        if URL in needed and not features.url_elicitation:
            return ToolError(NO_PAGES)
        lacking = sorted(one for one in needed if not takes(self.context.capabilities, one))
        if lacking and not features.input_required:
            return ToolError(LACKING.format(what=", ".join(lacking)))
        if lacking:
            return missing_capability(lacking)
        state = State() if self._state is None else self._state
        state = replace(
            state,
            asked={key: self._asked[key] for key in self._open},
            answers={key: one for key, one in self._given.items() if one.question is not None},
        )
        try:
            sealed = state.seal(bound_to=self._bound_to)
        except ProtocolError as error:
            return error if features.input_required else ToolError(TOO_LONG)
        return InputNeeded(InputRequired(questions=dict(self._open), state=sealed))

    def _message(self, said: str | PromptMessage) -> dict[str, Any]:
        message = PromptMessage(content=TextContent(said)) if isinstance(said, str) else said
        if not isinstance(message.content, (TextContent, ImageContent, AudioContent)):
            raise TypeError("Messages to a model are texts, pictures and sounds.")
        if isinstance(message.content, AudioContent) and not self.context.revision.features.audio:
            self._ended = ToolError(SILENT)
            raise self._ended
        wire = content(plain_block(message.content), self.context.revision.features)
        return {"role": message.role, "content": wire}


def begin(context: CallContext, rights: Rights, **call: Any) -> Conversation:
    """Let the code behind a call ask. Raises ProtocolError as `Conversation` does."""
    context.interview = conversation = Conversation(context, rights, **call)
    return conversation


def answers_of(state: State, sent: Mapping[str, Any]) -> dict[str, Answer]:
    """All answers so far. What came for a question that was not sent is no answer."""
    new = {
        key: Answer(question=digest, value=sent[key])
        for key, digest in state.asked.items()
        if key in sent
    }
    return {**state.answers, **new}


def form_question(message: str, asked: AskedForm) -> Question:
    params = {"mode": "form", "message": message, "requestedSchema": asked.schema}
    return Question(method=ELICITATION, params=params)


async def awaited(conversation: Conversation, awaitable: Awaitable[Any]) -> Any:
    """What async code returns, which has no transaction that would roll back."""
    try:
        value = await awaitable
        conversation.settle()
    except InputNeeded:
        await sync_to_async(conversation.release)()
        raise
    return value
