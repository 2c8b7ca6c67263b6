"""JSON-RPC 2.0: bytes to messages and back.

msgspec refuses invalid UTF-8, lone surrogates, NaN, infinities and endless numbers. The functions
here also refuse duplicate keys and deep nesting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from mcp_django.protocol.errors import INVALID_REQUEST, PARSE_ERROR, ProtocolError

RequestId: TypeAlias = str | int

MAX_DEPTH = 64
MAX_BATCH = 50
#: Values in one body. A call has dozens; a million of them would hold up everybody else.
MAX_VALUES = 20_000
#: Wide enough for every id that a client makes, narrow enough for every client's parser.
MAX_ID = 2**63
#: Members of params that are objects in each method that has them.
OBJECT_MEMBERS = ("_meta", "arguments", "capabilities", "context")
#: Characters of an id, or of a progress token: both are repeated, logged and remembered.
LONGEST_ID = 256
#: A string without an end reaches to the end of the body, its last backslash included. Where the
#: pattern failed there, each of its quotes would be tried as the next beginning.
STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)

decoder = msgspec.json.Decoder()
encoder = msgspec.json.Encoder()


@dataclass(frozen=True)
class Request:
    id: RequestId
    method: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Notification:
    method: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """The peer's answer to a request of ours: a result, or an error where that is not None."""

    id: RequestId | None
    result: Any = None
    error: Any = None


Message: TypeAlias = Request | Notification | Response


@dataclass(frozen=True)
class Batch:
    """An array of messages. An element that is no message stands there as its error."""

    messages: tuple[Message | ProtocolError, ...]


def decode(
    body: bytes, *, max_depth: int = MAX_DEPTH, max_batch: int = MAX_BATCH
) -> Message | Batch:
    """One message or one batch.

    Raises ProtocolError (-32700 or -32600, HTTP status 400) and nothing else, whatever the bytes.
    """
    value = decode_json(body, max_depth=max_depth)
    if not isinstance(value, list):
        return message_of(value)
    # Counted before an element is looked at: a small body holds a million that are no messages.
    if not 1 <= len(value) <= max_batch:
        raise invalid(f"A batch holds 1 to {max_batch} messages.")
    return Batch(tuple(message_or_error(item) for item in value))


def decode_json(body: bytes, *, max_depth: int = MAX_DEPTH) -> Any:
    """A JSON value. Raises ProtocolError and nothing else."""
    if has_too_many_values(body):
        raise ProtocolError(
            PARSE_ERROR, f"The body has more than {MAX_VALUES} values.", status=400
        )
    try:
        value = decoder.decode(body)
    except (ValueError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "The body is not valid JSON.", status=400) from None
    keys = count_keys(value, max_depth)
    if keys is None:
        raise ProtocolError(
            PARSE_ERROR, f"The body is nested deeper than {max_depth} levels.", status=400
        )
    # Each member of an object has one colon outside of strings. A decoder keeps one of two equal
    # keys, and two programs need not keep the same one. Strings are only looked at where they may
    # have colons of their own.
    if body.count(b":") != keys and STRINGS.sub(b"", body).count(b":") != keys:
        raise ProtocolError(PARSE_ERROR, "An object has the same key twice.", status=400)
    return value


def has_too_many_values(body: bytes) -> bool:
    """Whether there are more than MAX_VALUES. Looks at no more strings than those could have."""
    if count_values(body) <= MAX_VALUES:
        return False
    # A key and a string for each value, and a string that is all of the body.
    most = 2 * MAX_VALUES + 1
    rest, strings = STRINGS.subn(b"", body, count=most + 1)
    return strings > most or count_values(rest) > MAX_VALUES


def count_values(body: bytes) -> int:
    """No fewer than the values in a body, and at the speed of a search."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def count_keys(value: Any, max_depth: int) -> int | None:
    """The members of all objects in a value. None: it is nested deeper than `max_depth`."""
    depth = keys = 0
    level: list[Any] = [value]
    while level and depth <= max_depth:
        deeper: list[Any] = []
        for item in level:
            if type(item) is dict:
                keys += len(item)
                deeper += item.values()
            elif type(item) is list:
                deeper += item
        level = [item for item in deeper if type(item) is dict or type(item) is list]
        depth += 1
    return keys if depth <= max_depth else None


def message_or_error(value: Any) -> Message | ProtocolError:
    try:
        return message_of(value)
    except ProtocolError as error:
        return error


def message_of(value: Any) -> Message:
    """A decoded value as a message. Raises ProtocolError -32600 that carries a readable id."""
    if not isinstance(value, dict):
        raise invalid("A message is a JSON object.")
    request_id = value.get("id")
    readable = request_id if is_id(request_id) else None
    if value.get("jsonrpc") != "2.0":
        raise invalid('jsonrpc must be "2.0".', readable)
    if "method" not in value:
        return response_of(value, readable)
    method = value["method"]
    if not isinstance(method, str):
        raise invalid("method must be a string.", readable)
    params = params_of(value, readable)
    if "id" not in value:
        return Notification(method, params)
    if readable is None:
        raise invalid(f"id must be an integer, or a string of at most {LONGEST_ID} characters.")
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if isinstance(token, str) and len(token) > LONGEST_ID:
        raise invalid(f"A progressToken has at most {LONGEST_ID} characters.", readable)
    return Request(readable, method, params)


def params_of(value: dict[str, Any], request_id: RequestId | None) -> dict[str, Any]:
    """The params of a message. PHP writes an object without members as a list."""
    params = value.get("params")
    if params is None or params == []:
        return {}
    if not isinstance(params, dict):
        raise invalid("params must be an object.", request_id)
    for name in OBJECT_MEMBERS:
        if params.get(name) == []:
            params[name] = {}
    return params


def response_of(value: dict[str, Any], request_id: RequestId | None) -> Response:
    is_error = "error" in value
    # The id of an error is null or absent where the peer could not read the request.
    has_id = request_id is not None or (is_error and value.get("id") is None)
    if is_error == ("result" in value) or not has_id:
        raise invalid("A message has a method, or an id and one of result and error.", request_id)
    return Response(request_id, value.get("result"), value.get("error") if is_error else None)


def is_id(value: Any) -> bool:
    # bool is an int in Python but not an id in JSON-RPC.
    if type(value) is int:
        return -MAX_ID <= value < MAX_ID
    return isinstance(value, str) and len(value) <= LONGEST_ID


def invalid(sentence: str, request_id: RequestId | None = None) -> ProtocolError:
    return ProtocolError(INVALID_REQUEST, sentence, status=400, request_id=request_id)


def requests_of(received: Message | Batch) -> Iterator[Request]:
    messages = received.messages if isinstance(received, Batch) else (received,)
    return (message for message in messages if isinstance(message, Request))


def encode_result(request_id: RequestId, result: dict[str, Any]) -> bytes:
    return encoder.encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def encode_error(error: ProtocolError, *, id_optional: bool) -> bytes:
    """An error response. An id that could not be read is null or, in newer revisions, absent."""
    wire: dict[str, Any] = {"jsonrpc": "2.0"}
    if error.request_id is not None or not id_optional:
        wire["id"] = error.request_id
    wire["error"] = {"code": error.code, "message": error.message}
    if error.data is not None:
        wire["error"]["data"] = error.data
    return encoder.encode(wire)


def encode_request(request_id: RequestId, method: str, params: Mapping[str, Any]) -> bytes:
    """A request of ours to the client. Only the legacy era has any."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return encoder.encode(message)


def encode_notification(method: str, params: dict[str, Any]) -> bytes:
    return encoder.encode({"jsonrpc": "2.0", "method": method, "params": params})


def join_batch(answers: list[bytes]) -> bytes:
    return b"[" + b",".join(answers) + b"]"
