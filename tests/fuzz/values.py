"""JSON that is wrong somewhere: hostile values, and what can be done to a valid message."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from tests.nasty.hostile import ARGUMENTS, VALUES

#: Stands for digits that Python itself would not write.
HUGE = "@huge@"
DEEP = "@deep@"


def is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, tuple) and len(str(value)) < 10_000


HOSTILE = [one for one in VALUES if is_json(one)] + [HUGE, DEEP, "a" * 20_000]
SHAPES = {name: [one for one in values if is_json(one)] for name, values in ARGUMENTS.items()}


def dump(value: Any, random: Random | None = None) -> bytes:
    """The bytes of a value. With `random` written in one of the ways that JSON has."""
    separators = (",", ":") if random is None or random.random() < 0.8 else (" ,\t", " : \n")
    is_ascii = random is None or random.random() < 0.7
    text = json.dumps(value, separators=separators, ensure_ascii=is_ascii)
    text = text.replace(f'"{HUGE}"', "1" + "0" * 5000)
    text = text.replace(f'"{DEEP}"', "[" * 100 + "]" * 100)
    return text.encode(errors="surrogatepass")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything within a value, the value itself first."""
    found = [path]
    if isinstance(value, dict):
        for name, part in value.items():
            found += places(part, (*path, name))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            found += places(part, (*path, at))
    return found


def replaced(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    """A copy with `change(part)` at the path."""
    if not path:
        return change(value)
    found = copy.copy(value)
    found[path[0]] = replaced(value[path[0]], path[1:], change)
    return found


def mutated(random: Random, value: Any) -> Any:
    """A copy with one thing wrong."""
    path = random.choice(places(value))
    return replaced(value, path, lambda part: wrong(random, part))


def wrong(random: Random, part: Any) -> Any:
    """Another value in the place of this one, near to it or far from it."""
    if random.random() < 0.5:
        return random.choice(HOSTILE)
    if isinstance(part, dict):
        return wrong_object(random, part)
    if isinstance(part, list):
        return random.choice([part * 2, part[:-1], [*part, random.choice(HOSTILE)], [part], {}])
    if isinstance(part, str):
        at = random.randrange(len(part) + 1)
        strange = random.choice(["\x00", "\ud800", "é", "__", "%", " ", "\n", "/", "..", "?", "#"])
        return random.choice(
            [
                part[:at],
                part[:at] + strange + part[at:],
                part.upper(),
                part * 50,
                [part],
                part[::-1],
            ]
        )
    if isinstance(part, bool) or part is None:
        return random.choice([0, 1, "true", "null", not part])
    if abs(part) > 2**63:
        return [part]
    return random.choice([-part, part + 1, str(part), part + 0.5, part * 10**9, [part]])


def wrong_object(random: Random, part: dict[str, Any]) -> Any:
    names = [*part, *random.sample([*SHAPES, "extra"], 2)]
    name = random.choice(names)
    match random.randrange(4):
        case 0:
            return {other: value for other, value in part.items() if other != name}
        case 1:
            return {**part, name: random.choice(SHAPES.get(name) or HOSTILE)}
        case 2:
            return {**part, str(random.choice(HOSTILE))[:300]: random.choice(HOSTILE)}
        case _:
            return [list(pair) for pair in part.items()]


def broken(random: Random, body: bytes) -> bytes:
    """Bytes that are hardly JSON any more."""
    at = random.randrange(len(body) + 1)
    return random.choice(
        [
            lambda: body[:at],
            lambda: body[at:],
            lambda: body + body,
            lambda: body + random.choice([b"\x00", b",", b"}", b"]", b" x"]),
            lambda: body[:at] + bytes([random.randrange(256)]) + body[at + 1 :],
            lambda: body[:at] + random.randbytes(random.randrange(1, 20)) + body[at:],
            lambda: b"\xef\xbb\xbf" + body,
            lambda: body.decode(errors="replace").encode("utf-16"),
            lambda: b"",
            lambda: random.randbytes(random.randrange(200)),
            lambda: b" " * random.randrange(3000) + body,
            lambda: b"[" * random.randrange(1, 5000) + body,
            lambda: b'{"a":' * random.randrange(1, 3000) + b"1" + b"}" * random.randrange(3000),
            lambda: body.replace(b'"method"', b'"method":"ping","method"', 1),
            lambda: body.replace(b'"params":{', b'"params":{"name":"x",', 1),
            lambda: body.replace(b'"id"', b'"\\u0069d":5,"id"', 1),
            lambda: body.replace(b"1", random.choice([b"1e999", b"-0", b"01", b"1.", b"NaN"]), 1),
            lambda: body.replace(b'"', b"'"),
            lambda: b"[" + b",".join([body] * random.randrange(1, 60)) + b"]",
            lambda: b'"' + b'\\"' * random.randrange(1, 300),
            lambda: random.choice(
                [b"null", b"1", b'"x"', b"true", b"[]", b"{}", b"[[]]", b"[1,2]"]
            ),
        ]
    )()
