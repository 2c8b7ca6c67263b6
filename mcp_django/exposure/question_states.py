"""What was asked and answered so far: the client keeps it, signed, and the server nothing."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from mcp_django.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_django.signing import seal, unseal

PURPOSE = "state"
#: Seconds that a person may think about a question.
LIFETIME = 600
#: Seconds that all questions of a call may take together.
LONGEST_TALK = 3600
#: Characters. The answers so far travel in it, and in every request that follows.
LONGEST = 256 * 1024
INVALID = (
    "This requestState is not valid for this request, or too old. "
    "Send the request again without it, and without inputResponses."
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back for a question, as it came. None stands for any question of that key."""

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
        """After this nobody can go on from here."""
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


def digest_of(*parts: Any) -> str:
    """Of JSON data: the same for the same members in any order."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
