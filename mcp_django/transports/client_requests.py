"""Questions of a call as requests of ours to a legacy client, and the answers on their way back.

Only a coroutine waits. Another process that receives an answer keeps it in the store and announces
it; the process that asked reads it there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from mcp_django.protocol.jsonrpc import encode_request
from mcp_django.protocol.questions import ELICITATION, URL, Question
from mcp_django.protocol.render import cancelled, notification
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.sessions import Session, Store, StoreFull
from mcp_django.transports.hub import Hub
from mcp_django.transports.output import Waker
from mcp_django.transports.sessions import (
    answer_topic,
    in_store,
    read_answer,
    session_topic,
    try_store,
)

#: Seconds that a person may think about a question. The state of the questions is good for ten
#: minutes, and the call has to be run again within them.
PATIENCE = 570.0
#: Seconds between two looks for an answer that was not announced.
LOOK = 5.0
#: Seconds that a client may take to say that it is ready, of which it may send the word together
#: with its first request.
READINESS = 5.0
REFUSED = "The client refused what this call needs of it. Go on without, or tell the person so."
TOO_LATE = "Nobody answered in time. Make the call again when somebody is there to answer."
TOO_MANY = "This session has too many open questions. Make the call again when some are answered."
ENDED = "The session ended before anybody answered."
UNREADY = "The client has not said notifications/initialized yet, and is not asked before that."
STOPPING = "The server stops, and cannot wait for an answer. Make the call again."
UNHEARD = "The client left before it was asked."


class NoAnswer(Exception):
    """The client did not answer in time, or says that it cannot. The sentence is for a model."""


class ClientRequests:
    """What one call asks at once."""

    def __init__(
        self,
        questions: Mapping[str, Question],
        *,
        session: Session,
        hub: Hub,
        say: Callable[[bytes], None],
    ) -> None:
        self.questions = questions
        self.session = session
        self.hub = hub
        self.say = say
        self.revision = Revision(session.revision)
        #: By key of the question, the id of the request.
        self._open = {key: secrets.token_urlsafe(16) for key in questions}
        self._answers: dict[str, Any] = {}
        self._waker = Waker()
        self._are_asked = False
        self._is_unheard = False

    async def put(self) -> dict[str, Any]:
        """The answers by key, each as a modern client would send it. Raises NoAnswer."""
        topics = [answer_topic(request_id) for request_id in self._open.values()]
        topics.append(session_topic(self.session.key))
        try:
            with self.hub.when(self._waker.wake, *topics):
                await self._until_ready()
                await in_store(self._keep)
                self._ask()
                async with asyncio.timeout(PATIENCE):
                    while self._open:
                        await self._waker.wait(LOOK)
                        if self._is_unheard:
                            raise NoAnswer(UNHEARD)
                        if self.hub.is_closing:
                            raise NoAnswer(STOPPING)
                        self._read(await in_store(self._look))
        except StoreFull:
            raise NoAnswer(TOO_MANY) from None
        except TimeoutError:
            raise NoAnswer(TOO_LATE) from None
        finally:
            self._withdraw()
        return self._answers

    def leave(self) -> None:
        """The client is gone for good, and never heard what it is asked."""
        self._is_unheard = True
        self._waker.wake()

    async def _until_ready(self) -> None:
        """2025-11-25, basic/lifecycle: before it is, the server asks nothing."""
        try:
            async with asyncio.timeout(READINESS):
                while not (self.session.is_initialized or await in_store(self._is_ready)):
                    await self._waker.wait(LOOK)
        except TimeoutError:
            raise NoAnswer(UNREADY) from None

    def _ask(self) -> None:
        self._are_asked = True
        for key, request_id in self._open.items():
            question = self.questions[key]
            params = dict(question.params)
            if not self.revision.features.url_elicitation:
                params.pop("mode", None)
            elif question.needs == URL:
                # What tells a client that a page was done with names it by this id.
                params["elicitationId"] = request_id
            self.say(encode_request(request_id, question.method, params))

    def _read(self, answers: Mapping[str, bytes] | None) -> None:
        if answers is None:
            raise NoAnswer(ENDED)
        for key, data in answers.items():
            del self._open[key]
            said = read_answer(data)
            if "error" not in said:
                self._answers[key] = said.get("result")
            elif self.questions[key].method == ELICITATION:
                self._answers[key] = {"action": "cancel"}
            else:
                raise NoAnswer(REFUSED)

    def _withdraw(self) -> None:
        """Nobody waits for what is still open."""
        if not self._open:
            return
        for request_id in self._open.values() if self._are_asked else ():
            taken_back = cancelled(request_id, reason="Nobody waits for the answer any more.")
            self.say(notification(taken_back, self.revision))
        requests = tuple(self._open.values())
        self.hub.keep(try_store(lambda store: [*map(store.withdraw, requests)]))

    # In the thread

    def _is_ready(self, store: Store) -> bool:
        session = store.session(self.session.key)
        return session is not None and session.is_initialized

    def _keep(self, store: Store) -> None:
        for request_id in self._open.values():
            store.ask(self.session.key, request_id, owner=self.hub.key)

    def _look(self, store: Store) -> dict[str, bytes] | None:
        """The answers that came. None: there is no session that could bring any."""
        taken = {key: store.take_answer(request_id) for key, request_id in self._open.items()}
        came = {key: data for key, data in taken.items() if data is not None}
        return came if came or store.session(self.session.key) is not None else None
