"""Questions of a call as requests of ours to a legacy client, and the answers on their way back.

Nothing but a coroutine waits. An answer may arrive in another process: that keeps it in the store
and says so, and whoever asked looks there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mcp_django.protocol.jsonrpc import encode_request
from mcp_django.protocol.notifications import cancelled
from mcp_django.protocol.questions import ELICITATION, Question
from mcp_django.protocol.render import notification
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.interface import Question as OpenQuestion
from mcp_django.stores.interface import Session, Store
from mcp_django.transports.hub import Hub
from mcp_django.transports.sessions import answer_topic, read_answer
from mcp_django.transports.store_calls import in_store, try_store

#: Seconds that a person may think about a question.
PATIENCE = 600.0
#: Seconds between two looks for an answer that nobody told of.
LOOK = 5.0


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
        self._changed = asyncio.Event()

    async def put(self) -> dict[str, Any]:
        """The answers by key, each as a modern client would send it. Raises NoAnswer."""
        topics = [answer_topic(request_id) for request_id in self._open.values()]
        for topic in topics:
            self.hub.when(topic, self._changed.set)
        try:
            await in_store(self._keep)
            for key, request_id in self._open.items():
                self.say(self._request(key, request_id))
            async with asyncio.timeout(PATIENCE):
                while self._open:
                    await self._wait()
                    self._read(await in_store(self._look))
        except TimeoutError:
            raise NoAnswer("Nobody answered in time. Ask again later.") from None
        finally:
            for topic in topics:
                self.hub.forget(topic, self._changed.set)
            self._withdraw()
        return self._answers

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(LOOK):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    def _request(self, key: str, request_id: str) -> bytes:
        question = self.questions[key]
        params = dict(question.params)
        if not self.revision.features.url_elicitation:
            params.pop("mode", None)
        return encode_request(request_id, question.method, params)

    def _read(self, found: Mapping[str, bytes]) -> None:
        for key, data in found.items():
            del self._open[key]
            self._answers[key] = self._answer(key, read_answer(data))

    def _answer(self, key: str, said: Mapping[str, Any]) -> Any:
        if "error" not in said:
            return said.get("result")
        if self.questions[key].method == ELICITATION:
            return {"action": "cancel"}
        raise NoAnswer("The client refused what this call needs of it. Go on without, or tell so.")

    def _withdraw(self) -> None:
        """Nobody waits for what is still open."""
        if not self._open:
            return
        for request_id in self._open.values():
            taken_back = cancelled(request_id, reason="Nobody waits for the answer any more.")
            self.say(notification(taken_back, self.revision))
        self.hub.keep(try_store(partial(withdraw, tuple(self._open.values()))))

    # In the thread

    def _keep(self, store: Store) -> None:
        for request_id in self._open.values():
            store.ask(OpenQuestion(session=self.session.key, id=request_id, owner=self.hub.key))

    def _look(self, store: Store) -> dict[str, bytes]:
        found = {key: store.take_answer(request_id) for key, request_id in self._open.items()}
        return {key: data for key, data in found.items() if data is not None}


def withdraw(requests: Sequence[str], store: Store) -> None:
    for request_id in requests:
        store.withdraw(request_id)
