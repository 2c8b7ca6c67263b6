from __future__ import annotations

import json
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from django.http import HttpRequest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_django.exceptions import InvalidArguments, ToolError
from mcp_django.exposure.functions.arguments import STRAY_NAMES, as_declared
from mcp_django.exposure.functions.signatures import read_signature
from mcp_django.exposure.tools.functions import FunctionTool
from mcp_django.protocol.results import ToolResult
from tests.exposure.function_tools import accepts, call, text_of, tool_of
from tests.exposure.functions.test_signatures import Address, Colour, Line, Period, Size, Status
from tests.spec import requirement

EMPTY: list[int] = []


class Positive(msgspec.Struct):
    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError("number must be 1 or more " + "!" * 1000)


def everything(
    request: HttpRequest,
    number: int,
    when: date,
    price: Decimal,
    status: Status,
    names: list[str],
    *,
    moment: datetime | None = None,
    key: UUID | None = None,
    size: Size = Size.SMALL,
    colours: list[Colour] = EMPTY,  # type: ignore[assignment]  # only its emptiness matters
    kind: Literal["a", "b"] = "a",
    line: Line | None = None,
    address: Address | None = None,
    period: Period | None = None,
    prices: dict[str, Decimal] | None = None,
    code: Annotated[str, msgspec.Meta(pattern="^[A-Z]{2}$")] = "FR",
    members: set[Any] | None = None,
    extra: Any = "none",
    positive: Positive | None = None,
    ratio: float = 0.5,
    flag: bool = False,
    long: Annotated[str, msgspec.Meta(max_length=3)] = "",
    lines: list[Line] = EMPTY,  # type: ignore[assignment]  # only its emptiness matters
    names_or_one: list[str] | str = "none",
    note: str = "none",
    tags: list[str] | None = None,
    since: date | None = date(2026, 1, 31),
    amount: Decimal | None = Decimal("1.50"),
    untyped: list[Any] | None = None,
) -> str:
    return ascii([number, when, price, status])


VALID: dict[str, Any] = {"number": 1, "when": "2026-01-31", "price": "9.99", "status": "paid"}
VALID["names"] = ["a"]


@pytest.fixture(scope="module")
def everything_tool() -> FunctionTool:
    return tool_of(everything)


def read(made: FunctionTool, **arguments: Any) -> dict[str, Any]:
    return made.arguments.read({**VALID, **arguments}, None)


def refusal(made: FunctionTool, arguments: dict[str, Any]) -> str:
    with pytest.raises(InvalidArguments) as caught:
        made.arguments.read(arguments, None)
    assert type(caught.value) is InvalidArguments
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    check_call_in(str(caught.value), made)
    return str(caught.value)


def check_call_in(sentence: str, made: FunctionTool) -> None:
    """The call that the sentence shows is valid: for our reader, and by the schema."""
    shown = re.search(rf" A valid call: {made.name} (\{{.*\}})$", sentence)
    assert shown, sentence
    example = json.loads(shown[1])
    assert accepts(made.definition.input_schema, example)
    made.arguments.read(example, None)


@pytest.mark.parametrize(
    ("name", "sent", "expected"),
    [
        ("price", "1.50", Decimal("1.50")),
        ("price", 2, Decimal(2)),
        ("price", 0.1, Decimal("0.1")),
        ("moment", "2026-01-31T12:00:00Z", datetime.fromisoformat("2026-01-31T12:00:00+00:00")),
        ("moment", None, None),
        ("key", "6f1c2a4e-8c1b-4a57-9d43-2f0b9c7e5a10", UUID("6f1c2a4e8c1b4a579d432f0b9c7e5a10")),
        ("size", 2, Size.LARGE),
        ("colours", ["red"], [Colour.RED]),
        ("line", {"number": 1, "price": 2}, Line(number=1, price=Decimal(2))),
        ("address", {"city": "Paris"}, Address(city="Paris")),
        ("period", {"since": "2026-01-31"}, {"since": date(2026, 1, 31)}),
        ("prices", {"a": "1.5", "b": 2}, {"a": Decimal("1.5"), "b": Decimal(2)}),
        ("ratio", 1, 1.0),
        ("extra", {"deep": [1, None]}, {"deep": [1, None]}),
    ],
)
def test_json_is_read_into_what_the_annotation_says(everything_tool, name, sent, expected):
    assert accepts(everything_tool.definition.input_schema, {**VALID, name: sent})

    value = read(everything_tool, **{name: sent})[name]

    assert value == expected
    assert type(value) is type(expected)


def test_defaults_that_clients_could_send_are_shown_and_mutable_ones_are_not_shared(
    everything_tool,
):
    def collect(names: list[str] = ["first"]) -> str:  # noqa: B006
        names.append("more")
        return ", ".join(names)

    made, schema = tool_of(collect), everything_tool.definition.input_schema
    shown = {name: one.get("default") for name, one in schema["properties"].items()}

    assert schema["required"] == [*VALID]
    assert shown.items() >= {"size": 1, "since": "2026-01-31", "amount": "1.50"}.items()
    assert (shown["colours"], shown["ratio"], shown["key"]) == ([], 0.5, None)
    assert accepts(schema, VALID)
    assert [text_of(call(made)), text_of(call(made))] == ["first, more", "first, more"]
    assert made.definition.input_schema["properties"]["names"]["default"] == ["first"]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"number": "x"}, "Argument number: Expected a whole number, got a text: 'x'."),
        ({"number": "1.5"}, "Argument number: Expected a whole number, got a number"),
        ({"number": True}, "Argument number: Expected a whole number, got true or false: true."),
        ({"number": None}, "Argument number: Expected a whole number, got null."),
        ({"flag": 1}, "Argument flag: Expected true or false, got a whole number: 1."),
        ({"flag": "yes"}, "Argument flag: Expected true or false, got a text: 'yes'."),
        ({"when": "yesterday"}, "Argument when: Invalid RFC3339 encoded date: 'yesterday'."),
        (
            {"status": "lost"},
            "Argument status: Invalid value: 'lost'. Use one of: 'paid', 'open'.",
        ),
        ({"colours": ["mauve"]}, "Argument colours[0]: Invalid value. Use one of: 'blue', 'red'."),
        ({"kind": "c"}, "Argument kind: Invalid value: 'c'. Use one of: 'a', 'b'."),
        ({"size": 3}, "Argument size: Invalid value: 3. Use one of: 1, 2."),
        ({"line": {"number": 1}}, "Argument line: Object missing required field price."),
        (
            {"line": {"number": "x", "price": 1}},
            "Argument line.number: Expected a whole",
        ),
        (
            {"code": "france"},
            "Argument code: Expected a text matching regex '^[A-Z]{2}$'",
        ),
        ({"price": "NaN"}, "Argument price: Expected a finite number: 'NaN'."),
        ({"price": "1e999999999"}, "Argument price: Number out of range: '1e999999999'."),
        ({"prices": {"a": "-Infinity"}}, "Argument prices: Expected a finite number."),
        ({"ratio": float("nan")}, "Argument ratio: Expected a finite number: nan."),
        ({"ratio": 10**400}, f"Argument ratio: Number out of range: 1{'0' * 59}."),
        ({"number": 10**5000}, "Argument number: Number out of range: This value."),
        ({"extra": [{"a": float("inf")}]}, "Argument extra[0].a: Expected a finite number."),
        ({"extra": nested(10_000)}, "Argument extra: too deeply nested, or too large."),
        # As deep as the settings allow, and inside of the others.
        ({"extra": nested(64)}, "These arguments cannot be read together."),
        ({"members": [[1]]}, "Argument members: a member of it cannot stand there."),
        ({"positive": {"number": 0}}, "Argument positive: number must be 1 or more !!"),
        ({"request": 1}, "Unknown argument 'request'. This tool takes: number, when, price"),
        *(({name: 1}, f"Unknown argument '{name}'.") for name in ("ctx", "self")),
        ({"numbr": 1}, "Unknown argument 'numbr'. Did you mean number?"),
        ({"colour": 1, "zzz": 1}, "Unknown argument 'colour' and 1 more. Did you mean colours?"),
    ],
)
def test_what_is_wrong_is_said_with_a_call_that_is_valid(everything_tool, wrong, says):
    sentence = refusal(everything_tool, {**VALID, **wrong})

    assert sentence.startswith(says)


def test_nothing_long_comes_back(everything_tool):
    huge = "\u20ac" * 100_000

    many = {f"x{number}": 1 for number in range(5000)}
    for wrong in (
        {"status": huge},
        {"number": huge},
        {huge: 1},
        {"positive": {"number": -1}},
        many,
    ):
        sentence = refusal(everything_tool, {**VALID, **wrong})

        assert len(sentence) < 700
        assert sentence.isascii()


def counts_keys(numbers: dict[int, str]) -> None: ...
def counts_choices(numbers: dict[str, Literal["a"]], more: int) -> None: ...
def takes_nothing() -> None: ...


@pytest.mark.parametrize(
    ("function", "arguments", "says"),
    [
        (
            counts_keys,
            {"numbers": {"one": "x"}},
            "Argument a key of numbers: Expected a whole",
        ),
        (
            counts_choices,
            {"numbers": {"x": "b"}, "more": 1},
            "Argument numbers[...]: Invalid value. A valid call",
        ),
        (counts_choices, {}, "Missing argument: numbers, more. A valid call"),
        (takes_nothing, {"x": 1}, "Unknown argument 'x'. This tool takes no arguments. A valid"),
    ],
)
def test_a_refusal_names_the_place_of_what_is_wrong(function, arguments, says):
    assert refusal(tool_of(function), arguments).startswith(says)


@pytest.mark.parametrize("meta", [{"pattern": "^[0-9]{3}$"}, {"examples": ["x" * 500]}], ids=str)
def test_an_example_that_is_long_or_cannot_be_made_is_left_out(meta):
    def find(code: str) -> None: ...

    find.__annotations__["code"] = Annotated[str, msgspec.Meta(**meta)]

    with pytest.raises(ToolError) as caught:
        tool_of(find).arguments.read({}, None)

    assert str(caught.value) == "Missing argument: code."


def test_the_same_name_is_a_request_or_an_argument_by_its_annotation():
    def untyped(request): ...
    def typed(request: str) -> None: ...
    def optional(asked: Annotated[HttpRequest | None, "x"] = None) -> None: ...

    assert read_signature(untyped).given == {"request": HttpRequest}
    assert read_signature(typed).annotations == {"request": str}
    assert read_signature(optional).given == {"asked": HttpRequest}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from([*everything.__annotations__, "self", "ctx"]) | st.text()


@requirement("tools:validation", "tools:argument-errors")
@settings(deadline=None)
@given(arguments=st.dictionaries(NAMES, JSON), valid=st.booleans())
def test_any_arguments_give_a_result_or_a_tool_error(everything_tool, arguments, valid):
    arguments = {**arguments, **VALID} if valid else arguments

    try:
        result = call(everything_tool, arguments)
    except ToolError as error:
        check_call_in(str(error), everything_tool)
    else:
        assert isinstance(result, ToolResult)


# What models and SDKs send that is not quite what the schema says


LINE = Line(number=2, price=Decimal(3))


@pytest.mark.parametrize(
    ("name", "sent", "expected"),
    [
        ("line", '{"number": 2, "price": 3}', LINE),
        ("lines", '[{"number": 2, "price": 3}]', [LINE]),
        ("lines", ['{"number": 2, "price": 3}'], [LINE]),
        ("names", '["b", "c"]', ["b", "c"]),
        *((name, '["b"]', '["b"]') for name in ("names_or_one", "extra")),
        ("note", '{"a": 1}', '{"a": 1}'),
        *((name, "b", ["b"]) for name in ("names", "tags")),
        *(("number", sent, 5) for sent in (5.0, "5", " 5 ", "5.00")),
        ("line", '{"number": "2", "price": 3}', LINE),
        ("flag", "true", True),
        ("size", "2", Size.LARGE),
        *(("ratio", sent, float(sent)) for sent in ("2", "2.5", "-1e3")),
        *((name, "null", None) for name in ("line", "untyped")),
        *(("note", sent, sent) for sent in ("5", "true", "null")),
        ("line", {"number": 2.0, "price": 3}, LINE),
        ("size", 2.0, Size.LARGE),
        *((name, 2.0, 2.0) for name in ("ratio", "extra")),
        # Empty values that the function takes.
        *((name, [], []) for name in ("tags", "lines", "names")),
        ("note", "", ""),
        ("line", None, None),
        ("extra", {}, {}),
    ],
)
def test_what_a_model_sends_is_read_as_the_schema_declares(everything_tool, name, sent, expected):
    bound = read(everything_tool, **{name: sent})

    assert bound[name] == expected
    assert type(bound[name]) is type(expected)


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        *((name, "") for name in ("line", "lines", "ratio", "since", "amount", "code", "size")),
        *((name, "null") for name in ("ratio", "flag", "size")),
        *((name, "x") for name in STRAY_NAMES),
        *((name, None) for name in ("lines", "ratio", "note")),
        *(("line", {}), ("note", []), ("tags", {})),
    ],
)
def test_an_empty_value_that_an_optional_argument_cannot_have_is_no_argument(
    everything_tool, name, sent
):
    left_out = read(everything_tool)

    assert read(everything_tool, **{name: sent}) == left_out


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("number", ""), ("number", None), ("names", ""), ("names", '["b"'), ("lines", "b"),
        ("untyped", "b"), ("line", "[]"), ("line", "b"),
        # As many values as no body may have.
        ("untyped", f"[{'0,' * 200_000}0]"),
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_what_is_neither_a_value_nor_the_json_of_one_is_refused(everything_tool, name, sent):
    assert f"Argument {name}: Expected" in refusal(everything_tool, {**VALID, name: sent})


NESTED = '{"number": 1, "price": 1, "parts": ['


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ' * 500,
        "[" * 100_000,
        '{"number": 1e999, "price": 1}',
        '{"number": 1, "price": 1, "parts": [1e400]}',
        NESTED * 100 + "]}" * 100,
        NESTED * 450 + "]}" * 450,
    ],
)
def test_json_in_a_text_has_the_same_limits(everything_tool, text):
    assert "Argument line" in refusal(everything_tool, {**VALID, "line": text})


@pytest.mark.parametrize(
    ("schema", "sent", "read"),
    [
        # What a schema lists as values says which types there are.
        ({"enum": [1, 2.5, "x"]}, 2.0, 2),
        ({"enum": [[1], {"a": 1}]}, "[1]", [1]),
        ({"enum": [None, True]}, "true", True),
        ({"enum": ["true", True]}, "true", "true"),
        # JSON Schema has other regular expressions than Python.
        ({"type": "string", "pattern": "(?P<year>[0-9]*)(?(year)|x)"}, "", ""),
        ({"type": "string", "pattern": "^[0-9]+$"}, "", None),
    ],
)
def test_an_argument_is_read_by_whatever_its_schema_says_of_types(schema, sent, read):
    declared = as_declared({"value": sent}, {"properties": {"value": schema}}, takes_empty=True)

    assert declared.get("value") == read


# The call that is shown is made of the schema


def delay(flight: str, minutes: int, day: date | None = None, reason: str = "") -> None: ...


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ({"flight": "RF100", "minutes": "many", "reason": "Fog"}, {}),
        ({"flight": "RF100", "minute": 40}, {}),
        ({"flight": 1, "minutes": "many"}, {}),
        ({"flight": "RF100", "minutes": 40, "zzz": 1}, {}),
        ({"flight": "RF100", "minutes": 40, "day": "soon"}, {"day": "2026-01-31"}),
        ({"flight": "RF100", "minutes": 40, "reasn": "Fog"}, {"reason": ""}),
    ],
    ids=str,
)
def test_the_call_that_is_shown_has_what_is_required_and_what_was_wrong(sent, shown):
    sentence = refusal(tool_of(delay), sent)

    example = json.loads(sentence.partition(" A valid call: delay ")[2])
    assert example == {"flight": "text", "minutes": 1, **shown}
