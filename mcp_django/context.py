"""One call being answered: what its code may know about it, say while it runs, and ask."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from asgiref.sync import sync_to_async
from django.http import HttpRequest

from mcp_django.exceptions import Cancelled
from mcp_django.principal import Principal
from mcp_django.protocol import questions
from mcp_django.protocol.headers import SentParams
from mcp_django.protocol.jsonrpc import Notification
from mcp_django.protocol.methods import LOG_LEVELS, LogLevel
from mcp_django.protocol.render import log_message, progress
from mcp_django.protocol.results import PromptMessage
from mcp_django.protocol.revisions import Revision

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

Notify: TypeAlias = Callable[[Notification], None]
#: Runs what must not roll back with a transaction of the project's middleware: at once where there
#: is none, else when it is over. A ProtocolError of it is the answer of the call either way.
OutsideTransaction: TypeAlias = Callable[[Callable[[], object]], None]
#: From the least to the most urgent.
URGENCY = {level: urgency for urgency, level in enumerate(LOG_LEVELS)}
#: Characters of the name of a logger, and of a message about progress.
LONGEST_LOGGER, LONGEST_MESSAGE = 80, 1000
#: Beyond this an integer is another one for some readers of JSON.
LARGEST = 2**53


def drop(notification: Notification) -> None:
    """For transports that cannot send anything before the answer."""


def stay_open(milliseconds: int) -> None:
    """For transports that have no stream to close."""


def at_once(work: Callable[[], object]) -> None:
    """For calls round which nobody else opens a transaction."""
    work()


UNDECLARED = (
    "Only what was declared with asks=True may ask, since it runs again for each answer: "
    "write @mcp.tool(asks=True)."
)


@dataclass(kw_only=True)
class CallContext:
    """Everything that the code behind one call may use.

    A tool of yours takes it as a parameter annotated `mcp.Context`.
    """

    #: Django's request: `user` is the principal's, the path is the endpoint's.
    request: HttpRequest
    principal: Principal
    revision: Revision
    #: What the client says it can be asked for.
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    #: Answers and state of a request that is sent again.
    sent_input: questions.InputParams = field(default_factory=questions.InputParams)
    #: Whether the transport brings requests of ours to the client, and its answers back.
    can_request: bool = False
    #: The Elicitation that asks the client. Set for what was declared with asks=True.
    interview: Any = None
    #: What staff want a person to agree to before a function runs that asks for itself.
    asked_first: str = ""
    #: Name and version of the connected program, as it says itself. Never a security input.
    client: Mapping[str, Any] = field(default_factory=dict)
    #: The headers Mcp-Param-* of a modern HTTP request, and None elsewhere.
    sent_params: SentParams | None = None
    progress_token: str | int | None = None
    notify: Notify = drop
    #: Whether there are streams, which some methods need.
    streams: bool = False
    #: The id of the request that is answered.
    request_id: str | int = 0
    #: The key of the legacy session, empty where there is none.
    session: str = ""
    #: The least level of log messages that the client wants. None: it wants none.
    log_level: str | None = None
    #: What may be told of some data in a log message, as JSON.
    tell: Callable[[Any], Any] = str
    #: Set when nobody waits any more: the client left, or the time is over.
    cancelled: threading.Event = field(default_factory=threading.Event)
    #: Closes the stream of the call. See `close_stream`.
    release_stream: Callable[[int], None] = stay_open
    outside_transaction: OutsideTransaction = at_once
    #: Whether the call may change something: then its record is written before its answer.
    may_write: bool = False
    #: Where the call was counted against the limit of its tool.
    counted_as: str = ""
    #: When a dry run has to end, by `time.monotonic`. None: it is none.
    dry_run_ends: float | None = None
    #: The records that code of the site wrote into the log of the admin: label of the model, key.
    logged: list[tuple[str, str]] = field(default_factory=list)
    _value: float | None = None

    def progress(self, value: float, *, total: float | None = None, message: str = "") -> None:
        """Tell the client how far this call is. Costs nothing where it did not ask.

        Values must rise from call to call; one that does not is dropped, since the protocol
        forbids sending it. Raises Cancelled when nobody waits for the call any more.
        """
        self.check()
        number = finite(value)
        if self.progress_token is None or number is None:
            return
        if self._value is not None and number <= self._value:
            return
        self._value = number
        said = encodable(message)[:LONGEST_MESSAGE] or None
        whole = None if total is None else finite(total)
        self.notify(progress(self.progress_token, number, total=whole, message=said))

    def log(self, level: LogLevel, data: Any, *, logger: str = "") -> None:
        """Tell the client something about this call, if it wants messages of this level.

        `data` is a text, or anything that JSON can say; of everything else the text is sent.
        Long data is cut, and the values of names that look secret are left out. A call sends 20
        messages in a second, and says how many more there were. Nothing here is for a log of the
        site: that is Python's `logging`.
        """
        # Misspelled is misspelled, whoever listens.
        urgency = URGENCY[level]
        if self.log_level is None or urgency < URGENCY[self.log_level]:
            return
        if not self.cancelled.is_set():
            named = encodable(logger)[:LONGEST_LOGGER]
            self.notify(log_message(level, self.tell(data), logger=named))

    def close_stream(self, *, retry: int = 1000) -> None:
        """Close the connection and work on: the client comes back after `retry` milliseconds for
        what was said meanwhile, and for the answer.

        For calls that take minutes, where connections cost. Nothing happens where the client
        could not come back: only sessions of 2025-11-25 tell it how.
        """
        if self.session and self.revision.features.priming_events:
            self.release_stream(retry)

    def check(self) -> None:
        """Raise Cancelled when nobody waits for this call any more. Call it in long loops."""
        if self.cancelled.is_set():
            raise Cancelled

    # Asking: a question that has no answer yet ends the call. The client asks, and sends the
    # request again with the answers so far: the code runs from its start and gets them. No thread
    # waits.

    @property
    def can_ask(self) -> bool:
        """Whether `ask` can reach a person. Where not, do without or take another way."""
        return self._takes(questions.ELICITATION)

    @property
    def can_ask_url(self) -> bool:
        """Whether `ask_url` can send a person to a page."""
        return self.revision.features.url_elicitation and self._takes(questions.URL)

    @property
    def can_sample(self) -> bool:
        """Whether `sample` can reach a model of the client."""
        return self._takes(questions.SAMPLING)

    @property
    def can_list_roots(self) -> bool:
        """Whether the client says which folders it works in."""
        return self._takes(questions.ROOTS)

    def _takes(self, needed: str) -> bool:
        is_known = needed != questions.ELICITATION or self.revision.features.elicitation
        return is_known and self.is_reachable and questions.takes(self.capabilities, needed)

    @property
    def is_reachable(self) -> bool:
        """Whether questions reach the client at all: in results, or as requests of ours."""
        return self.revision.features.input_required or self.can_request

    def ask(self, key: str, form: Any, message: _StrOrPromise = "") -> Any:
        """What a person filled in: the `cleaned_data` of a Form, a class or an unbound instance.

        `key` names the question within the call. What the form does not take is asked for again.
        Raises Declined where the person does not want to.
        """
        return self._interviewed().ask(key, form, message=message)

    async def aask(self, key: str, form: Any, message: _StrOrPromise = "") -> Any:
        """`ask` for async code."""
        return await sync_to_async(self.ask)(key, form, message)

    def ask_url(self, key: str, url: str, message: _StrOrPromise = "") -> None:
        """Go on when a person has agreed to open a page, in a browser and not in the client.

        For what must not pass through the client: a password, a payment, a consent elsewhere. It
        does not mean that they are done there: look at what your page keeps. The page has to see
        to it itself that the one who opens it is `request.user`. Raises Declined where the person
        does not want to, and ValueError for a URL that is neither https nor of this machine, or
        that has a credential in it.
        """
        self._interviewed().ask_url(key, url, message=message)

    async def aask_url(self, key: str, url: str, message: _StrOrPromise = "") -> None:
        """`ask_url` for async code."""
        await sync_to_async(self.ask_url)(key, url, message)

    def confirm(self, text: _StrOrPromise, *, key: str = "confirm", digest: str = "") -> None:
        """Go on only if a person agrees to `text`. An agreement is good for one call.

        Where the client asks nobody, the call ends with the text and a token, and goes on when it
        is made again with the token. Neither holds when the text or `digest`, which stands for
        what it does not tell, is another by then. Raises Declined where the person says no.
        """
        self._interviewed().confirm(text, key=key, digest=digest)

    async def aconfirm(
        self, text: _StrOrPromise, *, key: str = "confirm", digest: str = ""
    ) -> None:
        """`confirm` for async code."""
        await sync_to_async(self.confirm)(text, key=key, digest=digest)

    def sample(
        self,
        key: str,
        messages: str | Sequence[str | PromptMessage],
        *,
        max_tokens: int,
        system_prompt: str = "",
        temperature: float | None = None,
        stop_sequences: Sequence[str] = (),
        preferences: Mapping[str, Any] | None = None,
    ) -> questions.SampledMessage:
        """What a model of the client writes. `preferences` are the protocol's modelPreferences."""
        options = {
            "maxTokens": max_tokens,
            "systemPrompt": system_prompt,
            "temperature": temperature,
            "stopSequences": list(stop_sequences),
            "modelPreferences": preferences,
        }
        given = {name: value for name, value in options.items() if value not in (None, "", [])}
        said = [messages] if isinstance(messages, str) else messages
        answer: questions.SampledMessage = self._interviewed().sample(key, said, options=given)
        return answer

    def roots(self, key: str = "roots") -> list[questions.Root]:
        """The folders that the client works in. They are no rights, and may not be there."""
        answer: list[questions.Root] = self._interviewed().roots(key)
        return answer

    def together(self) -> AbstractContextManager[None]:
        """Ask everything inside the block at once. What has no answer yet is None in there."""
        block: AbstractContextManager[None] = self._interviewed().together()
        return block

    def _interviewed(self) -> Any:
        if self.interview is None:
            raise RuntimeError(UNDECLARED)
        return self.interview


#: The call whose code of the site, or whose deletion, runs now, for receivers of signals.
_running: ContextVar[CallContext | None] = ContextVar("mcp_django_call", default=None)
running_call = _running.get


@contextmanager
def running(context: CallContext) -> Iterator[None]:
    """Code of the site runs for this call, in this thread or in this coroutine."""
    token = _running.set(context)
    try:
        yield
    finally:
        _running.reset(token)


def finite(value: Any) -> float | None:
    """The number as JSON has it, and None for one that it has not."""
    if isinstance(value, int) and abs(value) <= LARGEST:
        return int(value)
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def encodable(text: Any) -> str:
    """Also of a lazy text. UTF-8 has no place for half a character."""
    return str(text).encode("utf-8", "replace").decode()
