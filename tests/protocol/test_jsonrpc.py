"""Bytes to messages: any bytes are a message or a ProtocolError, and nothing else."""

from __future__ import annotations

import json
import time
import tracemalloc

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcp_django.protocol.errors import INVALID_REQUEST, PARSE_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import (
    MAX_DEPTH,
    MAX_VALUES,
    Batch,
    Notification,
    Request,
    Response,
    decode,
    decode_json,
    encode_error,
    encode_request,
    encode_result,
    join_batch,
    requests_of,
)
from tests.spec import requirement

FOUR_MIB = 4 * 1024 * 1024
FAILED = {"code": 1, "message": "x"}

scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text()
json_values = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)
ids = st.text(max_size=256) | st.integers(-(2**63), 2**63 - 1)


def outcome(function, body):
    """What the function returns, or the ProtocolError that it raises."""
    try:
        return function(body)
    except ProtocolError as error:
        return error


def refusal(body, **limits):
    """The error of a body that is none."""
    with pytest.raises(ProtocolError) as caught:
        decode(body, **limits)
    assert caught.value.status == 400
    return caught.value


def request(**members):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"} | members).encode()


JSON_SIGNS = st.text(alphabet='{}[]":,\\u0061\n \ud7ff1e-.ntrue').map(str.encode)


@given(st.binary() | JSON_SIGNS)
def test_any_bytes_decode_or_raise_protocol_error(body):
    message = outcome(decode, body)

    if isinstance(message, ProtocolError):
        assert message.code in (PARSE_ERROR, INVALID_REQUEST)
        assert message.status == 400
    else:
        assert isinstance(message, Request | Notification | Response | Batch)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: json_values | st.just("2.0") | st.text(max_size=3)
            for name in ("jsonrpc", "id", "method", "params", "result", "error")
        },
    )
)
def test_any_json_object_is_a_message_or_an_invalid_request_that_echoes_a_readable_id(wire):
    found = outcome(decode, json.dumps(wire).encode())

    if isinstance(found, ProtocolError):
        given_id = wire.get("id")
        is_int = type(given_id) is int and -(2**63) <= given_id < 2**63
        assert found.code == INVALID_REQUEST
        is_text = isinstance(given_id, str) and len(given_id) <= 256
        assert found.request_id == (given_id if is_int or is_text else None)


@given(json_values, st.booleans())
def test_json_decodes_to_what_another_decoder_finds_whatever_its_strings_hold(value, is_ascii):
    text = json.dumps(
        {"a": json.dumps(value), json.dumps(value) + ".": 'x":"{"y":1}\\', "b": value}
    )

    assert decode_json(json.dumps(json.loads(text), ensure_ascii=is_ascii).encode()) == (
        json.loads(text)
    )


@requirement("jsonrpc:parse-error", "jsonrpc:utf-8", "jsonrpc:hostile-json")
@pytest.mark.parametrize(
    "body",
    [
        b"", b" \n", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b'{"\xff": 1}', b'"\xc0\x80"',
        b'"\xed\xa0\x80"', rb'"\ud800"', rb'{"\udc00": 1}', rb'"\udc00\ud800"', b"NaN",
        b"[Infinity]", b"-Infinity", b"1e400", b"-1e400", b"1" * 5000, b"01", b"{} {}", b"[1,]",
        b"{a: 1}", b'"\n"', rb'"\x"', b"'a'", b'"', b"/**/{}", b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    ],
    ids=lambda body: ascii(body[:20]) + str(len(body)),
)  # fmt: skip
def test_what_is_no_json_is_a_parse_error_without_an_id(body):
    error = refusal(body)

    assert error.code == PARSE_ERROR
    assert error.request_id is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 1}', rb'{"\u0061": 1, "\u0061": 2}', rb'{"\/": 1, "/": 2}',
        b'{"": 1, "": 2}', b'[{"x": [{"a": 1, "b": {}, "a": {"c": 1, "d": 2}}]}]',
        b'{"a": ":", "a": 1}', rb'{"a": "\\", "a": ":"}', rb'{"a": "\":{", "a": "}"}',
        b"[" + b'{"a": 1}, ' * MAX_DEPTH + b'{"a": 1, "a": 2}]',
        '{"😀": 1, "\\ud83d\\ude00": 2}'.encode(),
    ],
)  # fmt: skip
def test_a_key_that_stands_twice_in_one_object_is_a_parse_error(body):
    assert refusal(body).code == PARSE_ERROR


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"a": {"a": 1}}}',
        '[{"a": 1}, {"a": 1}]',
        r'{"\\": ":", "\\\\": "\":\""}',
        '{"é": 1, "e\u0301": 2, "E": 3}',
        f'"{"[" * (MAX_DEPTH + 1)}"',
    ],
)
def test_colons_and_braces_in_strings_make_no_key_stand_twice(text):
    assert decode_json(text.encode()) == json.loads(text)


@requirement("jsonrpc:hostile-json")
@given(st.integers(1, 70), st.integers(1, 64), st.sampled_from(["[", '{"a":']))
def test_nesting_is_allowed_down_to_the_limit_and_no_deeper(depth, limit, opening):
    closing = "]" if opening == "[" else "}"
    # The innermost list or object stands empty.
    inner = "[]" if opening == "[" else "{}"
    body = (opening * (depth - 1) + inner + closing * (depth - 1)).encode()

    if depth <= limit:
        assert decode_json(body, max_depth=limit) == json.loads(body)
    else:
        with pytest.raises(ProtocolError, match=f"deeper than {limit} levels") as caught:
            decode_json(body, max_depth=limit)
        assert caught.value.code == PARSE_ERROR


@requirement("jsonrpc:hostile-json")
def test_a_million_strings_are_refused_at_about_the_price_of_decoding_them():
    body = b"[" + b'"",' * (FOUR_MIB // 3) + b'""]'

    assert refusal(body)
    # Measured: 0.7, and 20 where each of them is looked at.
    assert fastest(decode, body) < 5 * fastest(msgspec.json.decode, body)


def test_a_body_may_have_as_many_strings_as_its_values_and_their_keys():
    members = {f"{n},": "," for n in range(MAX_VALUES)}

    assert decode_json(json.dumps(members, separators=(",", ":")).encode()) == members


#: More values than a body may have, so that all that looks at a body looks at this one.
MANY = b"," * 20_001
NASTY = [
    *((MANY + b'"', unit, tail) for unit in (rb"\"", rb"\\") for tail in (b"", b"\\")),
    *((MANY + b'"', unit, b"") for unit in (b'\\"\\', b"\xff")),
    (MANY + b'"', b"\n", b"\\"),
    *((MANY, unit, b"") for unit in (b'"', b"\\", b'\\"', b'"\\', b'"\n')),
    *((MANY, unit, b'"') for unit in (b'""', b'"a')),
    (b"", b'"",', b""),
    (b"[", b'"\\"",', b'""]'),
    (b"", b"[", b""),
    (b"", b'{"":', b""),
    (b"{", b'"a":1,', b'"a":1}'),
    (b'{"a":"', rb"\":", b'"}'),
    (b'["', rb"\ud83d", b'"]'),
    (b"[", b"1e1,", b"1]"),
]


def fastest(function, body):
    """CPU seconds of this thread, of the best of several runs."""
    times = []
    for _ in range(4):
        began = time.thread_time()
        outcome(function, body)
        times.append(time.thread_time() - began)
    return min(times)


@pytest.mark.thorough
@requirement("jsonrpc:hostile-json")
@pytest.mark.parametrize(("head", "unit", "tail"), NASTY, ids=lambda part: ascii(part[-8:]))
def test_the_time_to_decode_grows_no_faster_than_the_body(head, unit, tail):
    """Ratios of CPU time, so that no machine is too slow or too busy for this."""
    sizes = [4**power * 1024 for power in range(1, 7)]
    assert sizes[-1] == FOUR_MIB
    bodies = [head + unit * (max(size - len(head), 0) // len(unit)) + tail for size in sizes]
    # Below that, what is measured is the clock.
    unit_time = max(fastest(decode_json, bodies[0]), 0.000_05)

    # In this order: what grows with the square of its size fails before it takes hours.
    for size, body in zip(sizes, bodies, strict=True):
        assert fastest(decode_json, body) < 10 * unit_time * size / sizes[0]


@pytest.mark.thorough
def test_many_elements_that_are_no_messages_cost_little_more_than_to_decode_them():
    body = b"[" + b"{}," * (FOUR_MIB // 12) + b"{}]"
    tracemalloc.start()
    try:
        refusal(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    # The decoded objects take 30 times. An error for each of them would take ten times that.
    assert peak < 60 * len(body)


# Messages


@requirement("jsonrpc:id-repeated", "jsonrpc:request-id")
@given(ids)
@example("")
@example("\N{SNOWMAN}" * 256)
@example(2**63 - 1)
@example(-(2**63))
def test_an_id_keeps_its_value_and_type(request_id):
    message = decode(request(id=request_id))

    assert message == Request(request_id, "ping")
    assert type(message.id) is type(request_id)


NO_IDS = [None, True, False, 1.0, 1.5, 1e300, 2**63, -(2**63) - 1, 10**4000, [], {}, "x" * 257]
REFUSED = [
    *((request(id=value), None) for value in NO_IDS),
    *((text, None) for text in (b"null", b"true", b"1", b'"ping"', b"1.5")),
    (b'{"id": 1, "method": "ping"}', 1),
    *(
        (request(**members), 1)
        for members in (
            *({"jsonrpc": version} for version in ("1.0", None)),
            *({"method": name} for name in (None, ["ping"])),
            *({"params": value} for value in ([1], "x", False)),
            {"params": {"_meta": {"progressToken": "x" * 257}}},
        )
    ),
    # Neither requests nor responses.
    *(
        (b'{"jsonrpc": "2.0", %s}' % members, request_id)
        for members, request_id in (
            (b'"id": 7', 7), (b'"id": 7, "result": {}, "error": {}', 7),
            (b'"id": "%s", "result": {}' % (b"x" * 257), None), (b'"result": {}', None),
            (b'"id": null, "result": {}', None), (b'"id": 1.5, "error": {}', None),
            (b'"id": true, "result": {}', None), (b'"params": {}', None),
        )
    ),
]  # fmt: skip


@requirement("jsonrpc:request-id", "jsonrpc:version-member", "errors:id-echoed")
@pytest.mark.parametrize(
    ("body", "request_id"), REFUSED, ids=lambda part: ascii(part)[-40:] if part else ""
)
def test_what_is_no_message_is_an_invalid_request_and_echoes_an_id_that_can_be_read(
    body, request_id
):
    error = refusal(body)

    assert (error.code, error.request_id) == (INVALID_REQUEST, request_id)


META = {"_meta": {"progressToken": "x" * 256}}


@requirement("jsonrpc:notification-unanswered")
@pytest.mark.parametrize(
    ("members", "message"),
    [
        *(
            (f'"id": 1, "method": "ping"{more}', Request(1, "ping"))
            for more in ("", ', "params": null', ', "params": {}', ', "unknown": {"a": 1}')
        ),
        (f'"id": 1, "method": "a", "params": {json.dumps(META)}', Request(1, "a", META)),
        ('"method": "x", "params": {"a": 1}', Notification("x", {"a": 1})),
        *(
            (f'"id": 7, "result": {json.dumps(it)}', Response(7, it))
            for it in ({}, {"a": [1]}, None)
        ),
        ('"id": "a", "error": {"code": 1, "message": "x"}', Response("a", error=FAILED)),
        ('"id": null, "error": {"code": 1, "message": "x"}', Response(None, error=FAILED)),
        ('"error": {"code": 1, "message": "x"}', Response(None, error=FAILED)),
    ],
)
def test_a_message_is_a_request_a_notification_or_a_response(members, message):
    assert decode(f'{{"jsonrpc": "2.0", {members}}}'.encode()) == message


# Batches


@requirement("batch:answered")
def test_a_batch_keeps_the_order_and_holds_an_error_where_an_element_is_no_message():
    body = b"[%s, 1, [], {}, %s, %s]" % (
        request(),
        b'{"jsonrpc": "2.0", "method": "n"}',
        b'{"jsonrpc": "2.0", "id": 3, "method": 4}',
    )

    batch = decode(body)

    assert isinstance(batch, Batch)
    first, number, nested, empty, notification, broken = batch.messages
    assert (first, notification) == (Request(1, "ping"), Notification("n"))
    errors = [number, nested, empty, broken]
    assert [type(error) for error in errors] == [ProtocolError] * 4
    assert {error.code for error in errors} == {INVALID_REQUEST}
    assert [error.request_id for error in errors] == [None, None, None, 3]
    assert list(requests_of(batch)) == [Request(1, "ping")]


# Encoding


MEMBERS = st.dictionaries(st.text(), scalars.filter(lambda value: type(value) is not int))


@requirement("jsonrpc:id-repeated", "jsonrpc:version-member")
@given(ids, MEMBERS)
def test_what_is_sent_repeats_the_id_and_is_one_line(request_id, members):
    result = encode_result(request_id, members)
    question = encode_request(request_id, "roots/list", members)

    assert json.loads(result) == {"jsonrpc": "2.0", "id": request_id, "result": members}
    assert decode(question) == Request(request_id, "roots/list", members)
    assert not set(b"\r\n") & set(result + question)


@requirement("errors:id-echoed", "jsonrpc:error-shape", "jsonrpc:result-or-error")
@pytest.mark.parametrize(
    ("request_id", "data", "id_optional", "members"),
    [
        (None, None, True, {}),
        (None, None, False, {"id": None}),
        (0, None, True, {"id": 0}),
        ("", None, True, {"id": ""}),
        (5, {"a": 1}, False, {"id": 5}),
    ],
)
def test_an_unreadable_id_is_null_or_absent_and_a_readable_one_echoed(
    request_id, data, id_optional, members
):
    error = ProtocolError(-32600, "No.", data, request_id=request_id)

    wire = json.loads(encode_error(error, id_optional=id_optional))

    shape = {"code": -32600, "message": "No.", **({"data": data} if data else {})}
    assert wire == {"jsonrpc": "2.0", "error": shape, **members}


@settings(max_examples=20)
@given(st.lists(ids, min_size=1))
def test_joined_answers_are_one_array_in_their_order(request_ids):
    answers = [encode_result(request_id, {}) for request_id in request_ids]

    assert [wire["id"] for wire in json.loads(join_batch(answers))] == request_ids
