"""What clients of all transports have in common, to try the README's table with."""

from __future__ import annotations

from typing import Any

from mcp_django.protocol.revisions import Era
from mcp_django.testing import Client

#: What a person says to every question.
ACCEPTED = {"action": "accept", "content": {}}
CAPABILITIES: dict[str, Any] = {"elicitation": {}}


class Refused(Exception):
    """The server does not do this here."""


class Driver:
    """Connected inside of `async with`, after the greeting of its era, which is in `hello`.

    `client` has the token and the revision. Questions are answered, and are in `asked`.
    """

    hello: dict[str, Any]

    def __init__(self, client: Client) -> None:
        self.client = client
        self.revision = client.revision
        self.is_legacy = client.revision.era is Era.LEGACY
        self.client.capabilities = CAPABILITIES
        self.asked: list[Any] = []

    async def __aenter__(self) -> Driver:
        await self.begin()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.leave()

    @property
    def greeting(self) -> dict[str, Any]:
        hello = {"name": "driver", "version": "1"}
        revision = self.revision.value
        return {
            "protocolVersion": revision,
            "capabilities": CAPABILITIES,
            "clientInfo": hello,
        }

    async def request(self, method: str, **params: Any) -> Any:
        """The result. Raises Refused."""
        return (await self.exchange(method, **params))[-1]["result"]

    async def exchange(self, method: str, **params: Any) -> list[Any]:
        """All that is said to a request, its answer last. Raises Refused."""
        told: list[Any] = []
        while True:
            *before, answer = await self.round(method, params)
            told += before
            if "error" in answer:
                raise Refused(answer["error"]["message"])
            if answer["result"].get("resultType") != "input_required":
                return [*told, answer]
            questions = answer["result"]["inputRequests"]
            self.asked += questions.values()
            params["inputResponses"] = dict.fromkeys(questions, ACCEPTED)
            params["requestState"] = answer["result"]["requestState"]

    async def until_answered(self, say: Any, message: Any) -> list[Any]:
        """Messages up to the answer, which has no method. `say` tells the server something."""
        told = []
        while True:
            told.append(await message())
            if "method" not in told[-1]:
                return told
            if "id" in told[-1]:
                self.asked.append(told.pop())
                await say({"jsonrpc": "2.0", "id": self.asked[-1]["id"], "result": ACCEPTED})

    # What the transports do each in their own way.

    async def begin(self) -> None:
        raise NotImplementedError

    async def leave(self) -> None:
        """Hang up."""

    async def round(self, method: str, params: dict[str, Any]) -> list[Any]:
        """What is said to a request as it is, errors and questions of the modern era included."""
        raise NotImplementedError

    async def batch(self, *methods: str) -> list[Any]:
        """The answers to requests that are sent as one message. Raises Refused."""
        raise NotImplementedError

    async def subscribe(self, uri: str) -> None:
        """From now on a change of it is told by `event`. Raises Refused."""
        raise NotImplementedError

    async def event(self) -> Any:
        raise NotImplementedError

    async def lose(self, method: str, **params: Any) -> None:
        """Lose the connection after the first message that is said to a request."""
        raise NotImplementedError

    async def come_back(self) -> list[Any]:
        """What is said to a client that connects again for the rest. Raises Refused."""
        raise NotImplementedError


def batched(answer: Any) -> list[Any]:
    """Raises Refused for anything but a list of answers."""
    if not isinstance(answer, list):
        raise Refused(answer["error"]["message"])
    return answer
