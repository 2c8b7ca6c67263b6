"""Why a call failed, as its record may keep it: a kind of failure, and names in the call.

The sentence itself is not kept. It may hold values: those of arguments, which records have only
where the settings ask for them, and those of records, which are part of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_django.auth.redaction import redact
from mcp_django.exceptions import (
    Declined,
    FormRefused,
    InvalidArguments,
    Limited,
    NotDone,
    NotFound,
    QueryError,
    ToolError,
    UnknownName,
)
from mcp_django.exposure.limits import TOO_SLOW
from mcp_django.protocol.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    ProtocolError,
)

LONGEST_RECORDED = 200
#: The first that fits.
KINDS_OF_REFUSAL: tuple[tuple[type[ToolError], str], ...] = (
    (NotFound, "Not found, or not allowed"),
    (Limited, "Too many calls"),
    (Declined, "The person did not agree"),
    (NotDone, "It cannot be done"),
    (UnknownName, "A name that cannot be used there"),
    (FormRefused, "The form of the admin refused the values"),
    (InvalidArguments, "Invalid arguments"),
    (QueryError, "The query cannot run"),
    (ToolError, "The tool refused the call"),
)
KINDS_OF_MISTAKE = {
    METHOD_NOT_FOUND: "Unknown method",
    INVALID_PARAMS: "Invalid parameters",
    MISSING_CAPABILITY: "The client cannot be asked",
}

#: What our sentences begin with, before the colon.
NAMED_FIRST = re.compile(r"(?:Argument )?([A-Za-z_][A-Za-z0-9_]{0,59}): ")
#: Characters of a sentence that are looked at: it may quote whatever a call held.
LONGEST_SENTENCE = 10_000
#: Names of one reason, and containers of a call within containers that names are looked for in.
MOST_PLACES, DEEPEST_PLACE = 4, 4


def reason_of(error: BaseException | None, params: Mapping[str, Any]) -> str:
    """The reason of a call with these params that ended with this error. Never its sentence."""
    if isinstance(error, ToolError):
        # Errors are raised again with the place in front of the sentence.
        chain, cause = [error], error.__cause__ or error.__context__
        while isinstance(cause, QueryError):
            chain.append(cause)
            cause = cause.__cause__ or cause.__context__
        kind = next(
            text for kind, text in KINDS_OF_REFUSAL if any(isinstance(one, kind) for one in chain)
        )
        if any(str(one) == TOO_SLOW for one in chain):
            kind = TOO_SLOW.partition(".")[0]
        return with_places(kind, str(error), params)
    if isinstance(error, ProtocolError):
        return KINDS_OF_MISTAKE.get(error.code, "Invalid request")
    if error is not None:
        return f"{type(error).__name__}: see the log"[:LONGEST_RECORDED]
    # Code of the site made the answer itself.
    return "The tool answered with an error"


def with_places(kind: str, sentence: str, params: Mapping[str, Any]) -> str:
    """The kind, and where in the call: names in front of its lines that are keys in it."""
    keys = set(keys_in(params.get("arguments"), DEEPEST_PLACE))
    places: list[str] = []
    for text in sentence[:LONGEST_SENTENCE].splitlines():
        path: list[str] = []
        while (found := NAMED_FIRST.match(text)) is not None and found[1] in keys:
            path.append(found[1])
            text = text[found.end() :]
        if path:
            places.append(" ".join(path))
    named = ", ".join(places[:MOST_PLACES])
    return redact(f"{kind}: {named}" if named else kind)[:LONGEST_RECORDED]


def keys_in(value: Any, depth: int) -> Iterator[str]:
    """The names of members in some JSON."""
    if not depth or not isinstance(value, Mapping | list):
        return
    if isinstance(value, Mapping):
        yield from (key for key in value if isinstance(key, str))
        value = list(value.values())
    for inner in value[:100]:
        yield from keys_in(inner, depth - 1)
