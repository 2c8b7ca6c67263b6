"""How code of the site asks the client in the middle of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from asgiref.sync import sync_to_async

from mcp_django.protocol.questions import (
    ELICITATION,
    ROOTS,
    SAMPLING,
    URL,
    InputParams,
    Root,
    SampledMessage,
    takes,
)
from mcp_django.protocol.results import PromptMessage
from mcp_django.protocol.revisions import Revision

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

UNDECLARED = (
    "Only what was declared with asks=True may ask, since it runs again for each answer: "
    "write @mcp.tool(asks=True)."
)


class Interview(Protocol):
    """Asks the client of one call, in the way of its era."""

    def ask(self, key: str, form: Any, *, message: _StrOrPromise) -> Any: ...
    def ask_url(self, key: str, url: str, *, message: _StrOrPromise) -> None: ...
    def confirm(self, text: _StrOrPromise, *, key: str, digest: str) -> None: ...
    def sample(
        self, key: str, messages: Sequence[str | PromptMessage], *, options: Mapping[str, Any]
    ) -> Any: ...
    def roots(self, key: str) -> Any: ...
    def together(self) -> AbstractContextManager[None]: ...
    def settle(self) -> None:
        """Raise once more what ended the call, where code of the site caught it."""
        ...


@dataclass(kw_only=True)
class Asking:
    """The part of `mcp.Context` that asks.

    A question that has no answer yet ends the call. The client asks, and sends the request again
    with the answers so far: the code runs from its start and gets them. No thread waits.
    """

    revision: Revision
    #: What the client says it can be asked for.
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    #: Answers and state of a request that is sent again.
    sent_input: InputParams = field(default_factory=InputParams)
    #: Whether the transport brings requests of ours to the client, and its answers back.
    can_request: bool = False
    #: Set for what was declared with asks=True.
    interview: Interview | None = None

    @property
    def can_ask(self) -> bool:
        """Whether `ask` can reach a person. Where not, do without or take another way."""
        return self._takes(ELICITATION)

    @property
    def can_ask_url(self) -> bool:
        """Whether `ask_url` can send a person to a page."""
        return self.revision.features.url_elicitation and self._takes(URL)

    @property
    def can_sample(self) -> bool:
        """Whether `sample` can reach a model of the client."""
        return self._takes(SAMPLING)

    @property
    def can_list_roots(self) -> bool:
        """Whether the client says which folders it works in."""
        return self._takes(ROOTS)

    def _takes(self, needed: str) -> bool:
        is_known = needed != ELICITATION or self.revision.features.elicitation
        return is_known and self.is_reachable and takes(self.capabilities, needed)

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
    ) -> SampledMessage:
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
        answer: SampledMessage = self._interviewed().sample(key, said, options=given)
        return answer

    def roots(self, key: str = "roots") -> list[Root]:
        """The folders that the client works in. They are no rights, and may not be there."""
        answer: list[Root] = self._interviewed().roots(key)
        return answer

    def together(self) -> AbstractContextManager[None]:
        """Ask everything inside the block at once. What has no answer yet is None in there."""
        return self._interviewed().together()

    def _interviewed(self) -> Interview:
        if self.interview is None:
            raise RuntimeError(UNDECLARED)
        return self.interview
