"""Error codes, and the one exception of this layer."""

from __future__ import annotations

from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
#: Below 2026-07-28 only; since then a missing resource is INVALID_PARAMS.
RESOURCE_NOT_FOUND = -32002
#: 2026-07-28 only: the range -32020..-32099 belongs to the specification.
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_REVISION = -32022


class ProtocolError(Exception):
    """The peer broke a rule of the protocol. Carries the JSON-RPC error to answer with.

    `status` is the HTTP status where the error is the whole answer. Errors of the domain ride on
    200: a client of two eras takes a 400 for a server that does not speak its revision.
    `request_id` is the id of the message, where one could be read. `headers` are those of that
    HTTP response.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: Any = None,
        *,
        status: int = 200,
        request_id: str | int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status
        self.request_id = request_id
        self.headers = headers


def named(name: str) -> str:
    """A name that a peer sent, short and on one line, so that it can stand in any message."""
    return ascii(name)[1:-1][:80]
