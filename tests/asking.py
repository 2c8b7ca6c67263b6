"""A request that is sent step by step, as a client does that asks a person in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp_django.testing import Client

TALKATIVE = {"elicitation": {}, "sampling": {}, "roots": {}}


@dataclass(frozen=True, kw_only=True)
class Talk:
    """A request, and what came back for it last."""

    client: Client
    method: str
    params: Mapping[str, Any]
    result: Mapping[str, Any]

    @classmethod
    def call(cls, client: Client, tool: str, **arguments: Any) -> Talk:
        return cls.begin(client, "tools/call", name=tool, arguments=arguments)

    @classmethod
    def begin(cls, client: Client, method: str, **params: Any) -> Talk:
        result = client.send(method, params)[-1]["result"]
        return cls(client=client, method=method, params=params, result=result)

    @property
    def questions(self) -> dict[str, Any]:
        return dict(self.result["inputRequests"])

    @property
    def messages(self) -> dict[str, str]:
        return {key: one["params"]["message"] for key, one in self.questions.items()}

    @property
    def state(self) -> str:
        return str(self.result["requestState"])

    @property
    def text(self) -> str:
        return str(self.result["content"][0]["text"])

    def answer(self, responses: Mapping[str, Any], **changes: Any) -> Talk:
        """Send it again with these answers and the state, or with other params."""
        params = {**self.params, "requestState": self.state, "inputResponses": responses}
        params = {name: one for name, one in {**params, **changes}.items() if one is not None}
        return replace(self, result=self.client.send(self.method, params)[-1]["result"])

    def accept(self, key: str, **content: Any) -> Talk:
        return self.answer({key: accepted(**content)})


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}
