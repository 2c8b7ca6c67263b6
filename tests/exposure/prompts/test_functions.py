from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

import mcp_django as mcp
from mcp_django.exceptions import ToolError
from mcp_django.protocol.content import TextContent
from mcp_django.protocol.results import PromptMessage
from tests.exposure.function_tools import get, prompt_of, refusal, rights_of, said
from tests.exposure.functions.test_signatures import Colour, Size
from tests.shop.models import Order

if TYPE_CHECKING:
    from tests.exposure.functions.test_signatures import Address


def user(**fields: Any) -> Any:
    allowed = fields.pop("permissions", ())
    defaults = {"is_active": True, "is_staff": True, "pk": 1}
    return SimpleNamespace(**{**defaults, **fields}, has_perm=lambda name: name in allowed)


def brief(city: str, tone: Literal["warm", "cool"] = "warm") -> str:
    """Brief somebody.

    Args:
        city: Where to.
    """
    return f"{city}, {tone}"


# Registration


def takes_model(order: Order): ...
def takes_list(names: list[str]): ...
def takes_union(value: int | str): ...
def takes_unknown(address: Address): ...
def yields():
    yield "x"


@pytest.mark.parametrize(
    ("function", "options", "sentence"),
    [
        (brief, {"name": "Brief-Me"}, r'name of a prompt: .*@mcp\.prompt\(name="brief_me"\)'),
        (brief, {"name": "a__b"}, "name of a prompt"),
        (brief, {"permission": "view"}, "is not a permission for the prompt 'brief'"),
        (brief, {"completions": {"town": list}}, "no argument 'town' to complete. It has: city"),
        (takes_model, {}, "order of the prompt 'takes_model': .*cannot be read from a text"),
        (takes_list, {}, "names of the prompt"),
        (takes_union, {}, "value of the prompt"),
        (takes_unknown, {}, "cannot be read"),
        (yields, {}, "yields"),
    ],
)
def test_what_cannot_be_a_prompt_is_told_when_it_is_registered(function, options, sentence):
    with pytest.raises(ImproperlyConfigured, match=sentence):
        prompt_of(function, **options)


# Arguments


def taking(annotation, *defaults, **options):
    """A prompt with one argument, which says how it was read."""

    def take(it):
        return repr(it)

    take.__annotations__ = {"it": annotation} if annotation else {}
    take.__defaults__ = defaults
    return prompt_of(take, **options)


FEW = Annotated[int, msgspec.Meta(ge=1, le=3, description="How many.")]
KEY = "12345678-1234-5678-1234-567812345678"


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (None, "a", "a"), (str, "b", "b"), (str, "", ""), (int, " -7 ", -7),
        (Decimal, "2.50", Decimal("2.50")), (float, "1e3", 1000.0),
        (date, "2026-11-18", date(2026, 11, 18)),
        (datetime, "2026-11-18T12:00:00Z", datetime.fromisoformat("2026-11-18T12:00:00Z")),
        (time, "12:30:00", time(12, 30)), (UUID, KEY, UUID(KEY)), (Colour, "red", Colour.RED),
        (Size, "2", Size.LARGE), (Literal["warm", 1], "1", 1), (bool, "Yes", True), (FEW, "3", 3),
        (Annotated[date, "a note"] | None, "2026-01-01", date(2026, 1, 1)),
    ],
)  # fmt: skip
def test_a_text_is_read_as_what_the_function_takes(annotation, text, value):
    assert taking(annotation).arguments.read({"it": text}) == {"it": value}


@pytest.mark.parametrize("annotation", [FEW, date | None])
def test_what_is_left_out_or_left_empty_has_its_default(annotation):
    prompt = taking(annotation, 2)

    assert [text for _, text in said(prompt) + said(prompt, it="")] == ["2", "2"]
    (argument,) = prompt.definition.arguments
    assert argument.description == ("How many." if annotation is FEW else "")


@pytest.mark.parametrize(
    ("annotation", "text", "sentence"),
    [
        (int, "7.5", "Argument it: '7.5' is not a whole number such as 7."),
        (int, "9" * 5000, "is not a whole number such as 7."),
        (int, "\u0667", "is not a whole number such as 7."),
        (int, "", "Argument it: '' is not a whole number such as 7."),
        (Decimal, "NaN", "Argument it: 'NaN' is not a number such as 2.50."),
        (Decimal, "1.2.3", "is not a number such as 2.50."),
        (Decimal, "1e999", "is not a number such as 2.50."),
        (float, "inf", "Argument it: 'inf' is not a number such as 2.5."),
        (date, "tomorrow", "'tomorrow' is not a date such as 2026-11-18."),
        (datetime, "12", "is not a time such as 2026-11-18T12:00:00Z."),
        (time, "12", "is not a time of day such as 12:00:00."),
        (UUID, "1", "is not a UUID."),
        (Colour, "RED", "Argument it: 'RED' is not one of: red, blue."),
        (Size, "3", "is not one of: 1, 2."),
        (Literal["warm", 1], "cool", "is not one of: warm, 1."),
        (bool, "maybe", "is not true or false."),
        (FEW, "4", "Argument it: '4' is not a whole number such as 7 within its limits."),
        (str, "x" * 20_000, "Argument it: longer than 16384 characters."),
    ],
)
def test_a_text_that_does_not_fit_is_refused_in_one_sentence(annotation, text, sentence):
    said = refusal(taking(annotation).arguments.read, {"it": text})

    assert sentence in said
    assert len(said) < 300


# Messages
LINK = mcp.ResourceLink(uri="django://site", name="x")


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        (_("Yes"), [("user", TextContent("Yes"))]),
        (mcp.Text("Hi"), [("user", TextContent("Hi"))]),
        (("a", LINK), [("user", TextContent("a")), ("user", LINK)]),
    ],
)
def test_what_a_function_returns_becomes_messages(value, messages):
    assert get(prompt_of(lambda: value, name="one")).messages == [
        PromptMessage(role=role, content=content) for role, content in messages
    ]


@pytest.mark.parametrize(
    "value",
    [
        *(None, [], 7, [["a"]]),
        Order(number="SECRET"),
        mcp.PromptMessage(role="system", content=mcp.Text("Hi")),
        PromptMessage(content="text"),  # type: ignore[arg-type]
    ],
)
def test_anything_else_is_a_bug_of_the_function_and_not_shown_and_too_much_is_refused(
    settings, value
):
    with pytest.raises(TypeError, match="The prompt 'one' returned") as refused:
        get(prompt_of(lambda: value, name="one"))
    assert "SECRET" not in str(refused.value)

    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "MAX_RESPONSE": 100}
    with pytest.raises(ToolError, match=r"^The prompt is too long; ask for less\.$"):
        get(prompt_of(lambda: "x" * 200, name="one"))


# Completion


def cities(request: HttpRequest, value: str) -> list[str]:
    assert request.user.pk == 1
    return ["Bonn", "Hamburg", "Bad Homburg", "Lisbon"]


def refuse(request: HttpRequest, value: str) -> list[str]:
    raise PermissionDenied


@pytest.mark.parametrize(
    ("annotation", "options", "value", "offered"),
    [
        (Colour, {}, "", ["blue", "red"]),
        (Colour, {}, "r", ["red"]),
        (Size, {}, "", ["1", "2"]),
        (Literal["warm", 1], {}, "W", ["warm"]),
        (bool, {}, "t", ["true"]),
        (date, {}, "2026", []),
        (None, {}, "", []),
        (str, {"it": cities}, "bo", ["Bonn", "Lisbon"]),
        (str, {"it": cities}, "ho", ["Bad Homburg"]),
        # What is refused offers nothing.
        (str, {"it": refuse}, "", []),
    ],
)
def test_what_goes_on_from_a_value(annotation, options, value, offered):
    prompt = taking(annotation, completions=options)

    assert prompt.complete(rights_of(user()), "it", value) == offered
    assert prompt.complete(rights_of(user()), "nothing", value) is None


def test_a_completion_that_fails_is_a_bug():
    prompt = taking(str, completions={"it": lambda request, value: 1 / 0})

    with pytest.raises(ZeroDivisionError):
        prompt.complete(rights_of(), "it", "")
