"""What a person, a model and a client answer to a server's questions, in tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from mcp_django.protocol.questions import ELICITATION, SAMPLING


class Choice:
    def __init__(self, action: Literal["accept", "decline", "cancel"]) -> None:
        self.action = action

    def __repr__(self) -> str:
        return f"<{self.action}>"


#: A form with this content; what the model writes; folders; what a person chose without a form.
Answer: TypeAlias = Mapping[str, Any] | str | Sequence[str] | Choice
#: By the key of the question; a function gets the question.
Answers: TypeAlias = Mapping[str, Answer | Callable[[dict[str, Any]], Answer]]

#: Questions that a client is ready for.
CAPABILITIES: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}
#: Times that a client sends one request again.
MOST_ROUNDS = 20


#: The person agrees, and fills nothing in: for pages.
ACCEPT = Choice("accept")
#: The person says no.
DECLINE = Choice("decline")
#: The person closes the form.
CANCEL = Choice("cancel")


class Unanswered(AssertionError):
    """The server asked, and the test has no answer to that. `questions` are by key."""

    def __init__(self, questions: Mapping[str, dict[str, Any]]) -> None:
        said = [f"{key}: {message_of(one)}" for key, one in questions.items()]
        super().__init__("Asked for " + "; ".join(said))
        self.questions = questions


def message_of(question: Mapping[str, Any]) -> str:
    message = question.get("params", {}).get("message", question["method"])
    return str(message)


def answers_to(
    questions: Mapping[str, dict[str, Any]], answers: Answers | None
) -> dict[str, dict[str, Any]]:
    """What a client sends back. Raises Unanswered."""
    unanswered = {key: one for key, one in questions.items() if key not in (answers or {})}
    if answers is None or unanswered:
        raise Unanswered(unanswered)
    return {key: answer_to(one, answers[key]) for key, one in questions.items()}


def answer_to(question: dict[str, Any], answer: Any) -> dict[str, Any]:
    if callable(answer):
        answer = answer(question)
    if isinstance(answer, Choice):
        return {"action": answer.action}
    if question["method"] == ELICITATION:
        return {"action": "accept", "content": dict(answer)}
    if question["method"] == SAMPLING:
        content = {"type": "text", "text": answer}
        return {"role": "assistant", "content": content, "model": "test", "stopReason": "endTurn"}
    return {"roots": [{"uri": uri} for uri in answer]}
