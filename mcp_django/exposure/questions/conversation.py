"""The questions of one call: those that have an answer, and those that end the call."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import msgspec
from asgiref.sync import sync_to_async
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.forms import BaseForm, BoundField, Field, FileField, SplitDateTimeField
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from mcp_django.context import CallContext
from mcp_django.exceptions import Declined, InputNeeded, ToolError
from mcp_django.exposure.forms.schemas import Describer
from mcp_django.exposure.functions.arguments import check_plain
from mcp_django.exposure.functions.results import plain_block, plain_text, structured
from mcp_django.exposure.options import SECRET_WORDS
from mcp_django.exposure.questions import confirmations
from mcp_django.exposure.questions.words import without_times
from mcp_django.protocol import questions
from mcp_django.protocol.content import AudioContent, ImageContent, TextContent
from mcp_django.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_django.protocol.questions import Question
from mcp_django.protocol.render import content
from mcp_django.protocol.results import InputRequired, PromptMessage
from mcp_django.signing import digest_of_json, seal, unseal

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

    from mcp_django.exposure.permissions import Rights


# The state: what was asked and answered so far. The client keeps it, signed.

PURPOSE = "state"
#: Seconds that a person may think about a question.
LIFETIME = 600
#: Seconds that all questions of a call may take together.
LONGEST_TALK = 3600
#: Seconds that a person needs to answer: with less of them left nobody is asked.
SHORTEST_TIME = 60
#: Characters. The answers so far travel in it, and in every request that follows.
LONGEST = 256 * 1024
INVALID = (
    "This requestState is not valid for this request, or too old. "
    "Send the request again without it, and without inputResponses."
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the client sent for a question. None stands for any question of that key."""

    question: str | None
    value: Any


@dataclass(frozen=True, kw_only=True)
class State:
    #: One for all questions of a call, so that it can be spent.
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    started: int = field(default_factory=lambda: int(time.time()))
    #: The digests of the questions that the client was sent, by key.
    asked: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)

    @property
    def ends_at(self) -> datetime:
        """When the call can no longer be continued."""
        return datetime.fromtimestamp(self.started + LONGEST_TALK, tz=UTC)

    def seal(self, *, bound_to: str) -> str:
        """Raises ProtocolError when the answers are too long to carry."""
        text = msgspec.json.encode(self).decode()
        sealed = seal(text, purpose=PURPOSE, bound_to=bound_to)
        if len(sealed) > LONGEST:
            raise ProtocolError(INVALID_PARAMS, "The answers in inputResponses are too long.")
        return sealed


def open_state(token: str, *, bound_to: str) -> State:
    """Raises ProtocolError for any that was not made for this caller and this request, in time."""
    text = unseal(token, purpose=PURPOSE, bound_to=bound_to, max_age=LIFETIME, longest=LONGEST)
    if text is None:
        raise ProtocolError(INVALID_PARAMS, INVALID)
    state = msgspec.json.decode(text, type=State)
    if time.time() > state.started + LONGEST_TALK:
        raise ProtocolError(INVALID_PARAMS, INVALID)
    return state


# Pages that a person has to open during a call.

#: Characters. Clients show all of it to the person.
LONGEST_URL = 2048
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
#: In addition to SECRET_WORDS: what opens a page for anyone who has its URL.
OPENS = re.compile(r"(^|_)(jwt|session|sessionid|sid|sig|signature)(_|$)", re.IGNORECASE)
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: RFC 3986: no blank, no quotation mark, nothing that is not ASCII.
URL_CHARACTERS = re.compile(r"[!#-;=?-\[\]_a-z~%]+")


def checked_url(url: str) -> str:
    """The same URL. Raises ValueError for one that a client may not be given.

    2025-11-25, client/elicitation: no credentials or other secrets, no URL that is already
    authenticated, and HTTPS outside of development.
    """
    if len(url) > LONGEST_URL or URL_CHARACTERS.fullmatch(url) is None:
        raise ValueError(
            f"A URL has at most {LONGEST_URL} characters, and only those of RFC 3986."
        )
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not parts.hostname or not is_safe:
        raise ValueError(f"The page must be https, and have a host: {url_for_errors(url)}")
    if "@" in parts.netloc:
        raise ValueError(f"The page must not have a user in its URL: {url_for_errors(url)}")
    for text in (parts.query, parts.fragment):
        for name in dict(parse_qsl(text, keep_blank_values=True)):
            # apiKey and api-key are api_key.
            words = HUMP.sub("_", name).replace("-", "_")
            if SECRET_WORDS.search(words) or OPENS.search(words):
                raise ValueError(f"The URL of the page has a credential in {name[:40]!r}.")
    return url


def url_for_errors(url: str) -> str:
    """The part of a URL that errors may show."""
    scheme, _, rest = url.partition("://")
    return f"{scheme[:20]}://{rest.partition('/')[0].rpartition('@')[2][:80]}"


# Forms that a person fills in at the client.


class AnsweredField(BoundField):
    """A field of a form whose data are a value of JSON, and not what its widget would send."""

    @property
    def data(self) -> Any:
        return self.form.data.get(self.html_name)


def fill_in_answers(
    form: BaseForm, content: Mapping[str, Any], properties: Mapping[str, Any]
) -> bool:
    """Whether the form takes the answers to what was asked, which these schemas say by name. What
    was not asked, or not answered, stays as the form had it. `form.errors` says what is wrong.
    """
    data = {}
    for name, form_field in form.fields.items():
        if name not in properties or name not in content:
            # A file stays without being opened.
            form_field.disabled = not isinstance(form_field, FileField)
        elif fits(content[name], properties[name]):
            value = answer_for(form_field, content[name], properties[name])
            data[form.add_prefix(name)] = value
        else:
            form_field.clean = refuse  # type: ignore[method-assign]
    form.data, form.is_bound = data, True
    form.bound_field_class = AnsweredField
    form._bound_fields_cache = {}  # type: ignore[attr-defined]  # not in the stubs
    form.full_clean()
    return form.is_valid()


def faults_of(form: BaseForm) -> str:
    """What is wrong with the answers, for a person."""
    lines = []
    for name, errors in form.errors.items():
        label = "" if name == NON_FIELD_ERRORS else f"{form[name].label}: "
        lines.append(label + " ".join(str(error) for error in errors))
    return "\n".join(lines)


def answer_for(field: Field, value: Any, schema: Mapping[str, Any]) -> Any:
    """The answer as `field.clean` takes it."""
    if isinstance(value, (int, float)) and schema["type"] == "string":
        value = str(value)
    if not isinstance(field, SplitDateTimeField) or value is None:
        return value
    with suppress(ValueError):
        if moment := parse_datetime(value):
            return field.widget.decompress(moment)
    return [value]


def refuse(value: Any) -> NoReturn:
    raise ValidationError(_("This cannot be an answer."))


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether the form may read the value: fields turn anything into a text or a boolean."""
    try:
        check_plain(value, deepest=1)
    except (ValueError, RecursionError):
        return False
    if schema["type"] == "boolean":
        return isinstance(value, bool)
    if schema["type"] == "array":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool))


# The conversation of one call.

#: What else a client is shown that cannot ask: members of the answer.
AnswerMembers: TypeAlias = Callable[[], Mapping[str, Any]]

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
TOO_LONG = (
    "The answers so far are too long to go on with. Make the call again, and have the person "
    "answer with less."
)
NO_TIME_LEFT = (
    "The questions of this call have taken too long to ask another one. Make the call again from "
    "its start."
)
ENDS_SOON = (
    "This has to ask the person something first, and your access to this server ends before they "
    "could answer. Have the person renew the access, and make the call again."
)
SILENT = "This client has no sounds for its model. Use one that speaks MCP 2025-03-26 or newer."
LONGEST_KEY = 64
#: The key of the question before a tool that asks. No tool of a site needs one like this.
ASKED_FIRST = "mcp_django.asked_first"


class Elicitation:
    """Asks the client by ending the call. The client repeats it with the answers so far."""

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
        self._bound_to = f"{rights.principal.key}:{digest_of_json(method, name, arguments)}"
        sent = context.sent_input
        self._state: State | None = None
        self._given = {
            key: Answer(question=None, value=value) for key, value in sent.answers.items()
        }
        if sent.state is not None:
            self._state = open_state(sent.state, bound_to=self._bound_to)
            # Only questions that were sent have answers.
            new = {
                key: Answer(question=digest, value=sent.answers[key])
                for key, digest in self._state.asked.items()
                if key in sent.answers
            }
            self._given = {**self._state.answers, **new}
        #: By key, what this run has asked for, answered or not.
        self._asked: dict[str, str] = {}
        self._open: dict[str, Question] = {}
        self._ended: Exception | None = None
        self._is_gathering = False
        self._is_spent = False
        self._has_confirmed = False
        #: The confirmations that were sent: staff may want one before the tool itself asks.
        token = arguments.get(confirmations.ARGUMENT)
        # Clients that fill in every argument send an empty one.
        self._tokens = token.split() if isinstance(token, str) else [token] if token else []
        self._redeemed: list[str] = []

    # What code of the site calls, through its context

    def ask(self, key: str, form: Any, *, message: _StrOrPromise) -> Any:
        form = form() if isinstance(form, type) else form
        schema = Describer(flat=True, features=self.context.revision.features).form(form)
        said = plain_text(message) or f"{self.name} needs an answer."
        question = form_question(said, schema)
        answer = self._answer(key, digest_of_json(question.as_wire()), questions.read_form)
        if answer is None:
            return self._need(key, question)
        if answer.action != "accept":
            self._take(key)
            raise Declined(is_explicit=answer.action == "decline")
        if not fill_in_answers(form, answer.content or {}, schema["properties"]):
            return self._need(key, form_question(f"{said}\n\n{faults_of(form)}", schema))
        self._take(key)
        return form.cleaned_data

    def ask_url(self, key: str, url: str, *, message: _StrOrPromise) -> None:
        said = plain_text(message) or f"{self.name} needs you to open a page."
        params = {"mode": "url", "message": said, "url": checked_url(url)}
        answer = self._ask_for(
            key, Question(method=questions.ELICITATION, params=params), questions.read_form
        )
        if answer is not None and answer.action != "accept":
            raise Declined(is_explicit=answer.action == "decline")

    def confirm(self, text: _StrOrPromise, *, key: str, digest: str) -> None:
        if self._has_confirmed:
            raise RuntimeError("A call confirms once. Say all of it in one text.")
        self._has_confirmed = True
        said = plain_text(text)
        self.approve(said, key=key, digest=digest_of_json(said, digest))

    def agree_first(self) -> None:
        """Go on only if a person agrees to what staff want to be asked before the code runs."""
        if self.context.asked_first:
            self.approve(self.context.asked_first, key=ASKED_FIRST, digest="")

    def approve(
        self, question: str, *, key: str, digest: str, preview: AnswerMembers = dict
    ) -> None:
        """Go on only if the person agrees to the question. `digest` is that of what would be
        done, as far as the question does not say it.

        Raises InputNeeded with the question while nobody has agreed to it.
        """
        digest = digest_of_json(without_times(question), digest)
        if self.context.can_ask or self.method != "tools/call":
            return self._agree(key, question, digest=digest)
        arguments = confirmations.without_token(self.arguments)
        approved = digest_of_json(self.name, arguments, digest)
        if tokens := self._tokens[len(self._redeemed) :]:
            try:
                confirmations.redeem(self.rights, tokens[0], approved, tool=self.name)
            except ToolError as error:
                self._end(error)
            self._redeemed.append(tokens[0])
            return
        if self._access_ends_soon():
            self._end(ToolError(ENDS_SOON))
        text = " ".join([*self._redeemed, confirmations.issue(self.rights, approved)])
        fenced = self.rights.fence(question)
        asks = {"question": fenced, confirmations.ARGUMENT: text, "next": confirmations.NEXT}
        result = structured(msgspec.json.encode({**preview(), **asks}))
        declared = self.rights.registry.tools.get(self.name)
        has_schema = declared is not None and declared.definition.output_schema is not None
        self._end(InputNeeded(replace(result, has_structured=has_schema)))

    def _agree(self, key: str, said: str, *, digest: str) -> None:
        box = {"title": _("Yes, do this"), "type": "boolean"}
        # Otherwise a client need not ask for the tick, and may send an empty answer.
        schema = {"type": "object", "properties": {"confirm": box}, "required": ["confirm"]}
        answer = self._answer(key, digest, questions.read_form, needs_state=True)
        if answer is None:
            return self._need(key, form_question(said, schema))
        tick = (answer.content or {}).get("confirm") if answer.action == "accept" else False
        if not isinstance(tick, bool):
            hint = _("Tick the box if you agree, or decline.")
            return self._need(key, form_question(f"{said}\n\n{hint}", schema))
        self._take(key, once=tick)
        if not tick:
            raise Declined(is_explicit=answer.action != "cancel")

    def sample(
        self, key: str, messages: Sequence[str | PromptMessage], *, options: Mapping[str, Any]
    ) -> Any:
        said = [self._message(message) for message in messages]
        question = Question(method=questions.SAMPLING, params={"messages": said, **options})
        return self._ask_for(key, question, questions.read_sampled)

    def roots(self, key: str) -> Any:
        return self._ask_for(key, Question(method=questions.ROOTS), questions.read_roots)

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
            self._end(self._ending())

    def settle(self) -> None:
        if self._ended is not None:
            raise self._ended

    def release(self) -> None:
        """Undo that answers and confirmations were used, where no transaction does it."""
        if self._is_spent and self._state is not None:
            confirmations.unspend(self._state.nonce)
        for token in self._redeemed:
            confirmations.unspend(token)

    # What has an answer

    def _ask_for(self, key: str, question: Question, read: Callable[[Any], Any]) -> Any:
        answer = self._answer(key, digest_of_json(question.as_wire()), read)
        if answer is None:
            return self._need(key, question)
        self._take(key)
        return answer

    def _answer(
        self, key: str, wanted: str, read: Callable[[Any], Any], *, needs_state: bool = False
    ) -> Any:
        """What came back for the question with this digest. None: nothing, or no answer to it."""
        if not 0 < len(key) <= LONGEST_KEY:
            raise ValueError(f"The key of a question has 1 to {LONGEST_KEY} characters.")
        if self._asked.setdefault(key, wanted) != wanted:
            raise RuntimeError(f"Two questions of one call have the key {key!r}.")
        answer = self._given.get(key)
        if answer is None:
            return None
        if answer.question is None:
            # It is unknown which question it answers.
            fits = not (needs_state or self.is_single_use)
        else:
            fits = answer.question == wanted
        return read(answer.value) if fits else None

    def _take(self, key: str, *, once: bool = False) -> None:
        """Use an answer. It goes on with the call, through all questions that follow."""
        self._given[key] = replace(self._given[key], question=self._asked[key])
        if not (once or self.is_single_use) or self._is_spent or self._state is None:
            return
        if not confirmations.spend(self._state.nonce, expires_at=self._state.ends_at):
            self._end(ToolError(USED))
        self._is_spent = True

    # What has no answer

    def _need(self, key: str, question: Question) -> None:
        self._given.pop(key, None)
        self._open[key] = question
        if not self._is_gathering:
            self._end(self._ending())

    def _end(self, why: Exception) -> NoReturn:
        """End the call, even if code of the site catches this."""
        self._ended = why
        raise why

    def _ending(self) -> Exception:
        """Why the call ends: the questions, or that this client cannot be asked."""
        if not self.context.is_reachable:
            return ToolError(UNASKABLE)
        features = self.context.revision.features
        needed = {question.needs for question in self._open.values()}
        if questions.ELICITATION in needed and not features.elicitation:
            return ToolError(NO_FORMS)
        if questions.URL in needed and not features.url_elicitation:
            return ToolError(NO_PAGES)
        lacking = sorted(
            capability
            for capability in needed
            if not questions.takes(self.context.capabilities, capability)
        )
        if lacking and not features.input_required:
            return ToolError(LACKING.format(what=", ".join(lacking)))
        if lacking:
            return questions.missing_capability(lacking)
        state = State() if self._state is None else self._state
        if time.time() > state.started + LONGEST_TALK - SHORTEST_TIME:
            return ToolError(NO_TIME_LEFT)
        if self._access_ends_soon():
            return ToolError(ENDS_SOON)
        state = replace(
            state,
            asked={key: self._asked[key] for key in self._open},
            answers={
                key: answer for key, answer in self._given.items() if answer.question is not None
            },
        )
        try:
            sealed = state.seal(bound_to=self._bound_to)
        except ProtocolError as error:
            return error if features.input_required else ToolError(TOO_LONG)
        return InputNeeded(InputRequired(questions=dict(self._open), state=sealed))

    def _access_ends_soon(self) -> bool:
        ends_at = self.rights.principal.ends_at
        return ends_at is not None and ends_at.timestamp() < time.time() + SHORTEST_TIME

    def _message(self, said: str | PromptMessage) -> dict[str, Any]:
        message = PromptMessage(content=TextContent(said)) if isinstance(said, str) else said
        if not isinstance(message.content, (TextContent, ImageContent, AudioContent)):
            raise TypeError("Messages to a model are texts, pictures and sounds.")
        if isinstance(message.content, AudioContent) and not self.context.revision.features.audio:
            self._end(ToolError(SILENT))
        wire = content(plain_block(message.content), self.context.revision.features)
        return {"role": message.role, "content": wire}


def approve(
    context: CallContext,
    rights: Rights,
    *,
    tool: str,
    arguments: Mapping[str, Any],
    question: str,
    digest: str = "",
    preview: AnswerMembers = dict,
) -> None:
    """Go on only if the person agrees to a change of which nothing was done yet.

    What they agree to is this call, with what `digest` stands for: the records and the page. Where
    the client can ask its person, it asks. Else the call ends with `preview`, the question and a
    confirmation to call again with. Either is good once, for this caller and in time.

    Call it in the transaction of the change: when that rolls back, the agreement is unused again.
    Raises InputNeeded, ToolError for a confirmation that is not good, and Declined.
    """
    conversation = Elicitation(
        context, rights, method="tools/call", name=tool, arguments=arguments, is_single_use=True
    )
    try:
        conversation.approve(question, key=confirmations.ARGUMENT, digest=digest, preview=preview)
    except Declined as declined:
        raise Declined(is_explicit=declined.is_explicit, outcome="Nothing was done.") from None


def form_question(message: str, schema: Mapping[str, Any]) -> Question:
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return Question(method=questions.ELICITATION, params=params)


async def awaited(conversation: Elicitation, called: Callable[[], Awaitable[Any]]) -> Any:
    """What async code returns. It has no transaction that would roll back."""
    try:
        await sync_to_async(conversation.agree_first)()
        value = await called()
        conversation.settle()
    except InputNeeded:
        await sync_to_async(conversation.release)()
        raise
    return value
