from __future__ import annotations

import enum
from datetime import date, datetime, time
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from django.core.exceptions import ImproperlyConfigured, PermissionDenied, ValidationError
from django.db import models
from django.http import Http404, HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

import mcp_django as mcp
from mcp_django.exceptions import AlreadyRegistered, NotRegistered, ToolError
from mcp_django.exposure.primitives import PendingCall
from mcp_django.exposure.registry import registry
from mcp_django.principal import READ
from mcp_django.protocol.content import TextContent
from mcp_django.protocol.results import PromptArgument, PromptMessage
from tests.exposure.function_tools import context_of, rights_of
from tests.exposure.prompts.function_prompts import get, prompt_of, said
from tests.shop.models import Order

if TYPE_CHECKING:
    from tests.exposure.functions.test_signatures import Address


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(models.IntegerChoices):
    SMALL = 1, "small"
    LARGE = 2, "large"


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


def test_the_public_decorator_offers_the_prompt_on_the_site():
    try:
        assert mcp.prompt(brief) is brief
        assert repr(registry.prompts["brief"]) == "<CodePrompt brief>"
        with pytest.raises(AlreadyRegistered):
            mcp.prompt(name="brief")(lambda: "x")
    finally:
        registry.remove_prompt("brief")
    with pytest.raises(NotRegistered):
        registry.remove_prompt("brief")


def test_the_docstring_and_the_signature_become_the_definition():
    made = prompt_of(brief, title=_("Yes"))

    with override("de"):
        found = made.definition

    assert (found.name, found.title, found.description) == ("brief", "Ja", "Brief somebody.")
    assert made.definition.title == "Yes"
    assert found.arguments == [
        PromptArgument(name="city", description="Where to.", required=True),
        PromptArgument(name="tone"),
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": "Brief-Me"}, r'name of a prompt: .*@mcp\.prompt\(name="brief_me"\)'),
        ({"name": "a__b"}, "name of a prompt"),
        ({"permission": "view_order"}, "is not a permission for the prompt 'brief'"),
        ({"completions": {"town": list}}, "no argument 'town' to complete. It has: city, tone"),
    ],
)
def test_mistakes_in_options_are_told_when_the_prompt_is_registered(options, sentence):
    with pytest.raises(ImproperlyConfigured, match=sentence):
        prompt_of(brief, **options)


def takes_model(order: Order): ...
def takes_list(names: list[str]): ...
def takes_union(value: int | str): ...
def takes_unknown(address: Address): ...
def takes_all(*names: str): ...
def takes_context(ctx): ...
def yields():
    yield "x"


class Class:
    def method(self): ...


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (takes_model, "order of the prompt 'takes_model': .*cannot be read from a text"),
        (takes_list, "names of the prompt"),
        (takes_union, "value of the prompt"),
        (takes_unknown, "cannot be read"),
        (takes_all, "Arguments arrive by name"),
        (takes_context, r"Annotate it: ctx: mcp\.Context"),
        (Class.method, "is a method"),
        (yields, "yields"),
        (Class, "decorates functions"),
    ],
)
def test_what_cannot_be_a_prompt_is_told_when_it_is_registered(function, sentence):
    with pytest.raises(ImproperlyConfigured, match=sentence):
        prompt_of(function)


# Arguments


def everything(
    untyped,
    text: str,
    number: int,
    amount: Decimal,
    share: float,
    day: date,
    moment: datetime,
    clock: time,
    key: UUID,
    color: Color,
    size: Size,
    tone: Literal["warm", 1],
    sure: bool,
    few: Annotated[int, msgspec.Meta(ge=1, le=3, description="How many.")] = 2,
    other: Annotated[date, "a note"] | None = None,
):
    return repr(locals())


TEXTS = {
    "untyped": "a",
    "text": "b",
    "number": " -7 ",
    "amount": "2.50",
    "share": "1e3",
    "day": "2026-11-18",
    "moment": "2026-11-18T12:00:00Z",
    "clock": "12:30:00",
    "key": "12345678-1234-5678-1234-567812345678",
    "color": "red",
    "size": "2",
    "tone": "1",
    "sure": "Yes",
}


def test_texts_are_read_as_what_the_function_takes():
    made = prompt_of(everything)

    read = made.arguments.read({**TEXTS, "few": "3", "other": "2026-01-01"})

    assert read == {
        "untyped": "a",
        "text": "b",
        "number": -7,
        "amount": Decimal("2.50"),
        "share": 1000.0,
        "day": date(2026, 11, 18),
        "moment": datetime.fromisoformat("2026-11-18T12:00:00Z"),
        "clock": time(12, 30),
        "key": UUID(TEXTS["key"]),
        "color": Color.RED,
        "size": Size.LARGE,
        "tone": 1,
        "sure": True,
        "few": 3,
        "other": date(2026, 1, 1),
    }
    described = {one.name: one.description for one in made.definition.arguments}
    assert (described["few"], described["other"]) == ("How many.", "")


def test_what_is_left_out_or_left_empty_has_its_default():
    made = prompt_of(everything)

    assert "few" not in made.arguments.read(TEXTS)
    assert made.arguments.read({**TEXTS, "few": "", "other": ""}).keys() == TEXTS.keys()
    assert made.arguments.read({**TEXTS, "text": ""})["text"] == ""
    assert "'few': 2" in said(made, **TEXTS)[0][1]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"number": "7.5"}, "Argument number: '7.5' is not a whole number such as 7."),
        ({"number": "9" * 5000}, "is not a whole number such as 7."),
        ({"number": "\u0667"}, "is not a whole number such as 7."),
        ({"number": ""}, "Argument number: '' is not a whole number such as 7."),
        ({"amount": "NaN"}, "Argument amount: 'NaN' is not a number such as 2.50."),
        ({"amount": "1.2.3"}, "is not a number such as 2.50."),
        ({"amount": "1e999"}, "is not a number such as 2.50."),
        ({"share": "inf"}, "Argument share: 'inf' is not a number such as 2.5."),
        ({"day": "tomorrow"}, "'tomorrow' is not a date such as 2026-11-18."),
        ({"moment": "12"}, "is not a time such as 2026-11-18T12:00:00Z."),
        ({"clock": "12"}, "is not a time of day such as 12:00:00."),
        ({"key": "1"}, "is not a UUID."),
        ({"color": "RED"}, "Argument color: 'RED' is not one of: red, blue."),
        ({"size": "3"}, "is not one of: 1, 2."),
        ({"tone": "cool"}, "is not one of: warm, 1."),
        ({"sure": "maybe"}, "is not true or false."),
        ({"few": "4"}, "Argument few: '4' is not a whole number such as 7 within its limits."),
        ({"text": "x" * 20_000}, "Argument text: longer than 16384 characters."),
        ({"numbr": "1"}, "Unknown argument 'numbr'. Did you mean number?"),
        ({"zzz": "1"}, "Unknown argument 'zzz'. This prompt takes: untyped, text, number"),
        ({"sure": None, "tone": None}, "Missing argument: tone, sure."),
    ],
)
def test_a_text_that_does_not_fit_is_refused_in_one_sentence(changed, sentence):
    made = prompt_of(everything)
    texts = {name: text for name, text in {**TEXTS, **changed}.items() if text is not None}

    with pytest.raises(ToolError) as refused:
        made.arguments.read(texts)

    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 300


# Messages


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("Hello", [PromptMessage(content=TextContent("Hello"))]),
        (_("Yes"), [PromptMessage(content=TextContent("Yes"))]),
        (mcp.Text("Hi"), [PromptMessage(content=TextContent("Hi"))]),
        (
            mcp.Image(data=b"1", mime_type="image/png"),
            [PromptMessage(content=mcp.Image(data=b"1", mime_type="image/png"))],
        ),
        (
            mcp.PromptMessage(role="assistant", content=mcp.Text("Hi")),
            [PromptMessage(role="assistant", content=TextContent("Hi"))],
        ),
        (
            ("a", mcp.ResourceLink(uri="django://site", name="x")),
            [
                PromptMessage(content=TextContent("a")),
                PromptMessage(content=mcp.ResourceLink(uri="django://site", name="x")),
            ],
        ),
    ],
)
def test_what_a_function_returns_becomes_messages(value, messages):
    assert get(prompt_of(lambda: value, name="one")).messages == messages


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        7,
        [["a"]],
        Order(number="SECRET"),
        mcp.PromptMessage(role="system", content=mcp.Text("Hi")),
        PromptMessage(content="text"),  # type: ignore[arg-type]
    ],
)
def test_anything_else_is_a_bug_of_the_function_and_not_shown(value):
    with pytest.raises(TypeError, match="The prompt 'one' returned") as refused:
        get(prompt_of(lambda: value, name="one"))

    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValidationError("Too late."), "Too late."),
        (ToolError("Name a day."), "Name a day."),
        # Of the function's answer.
        (None, "The prompt is too long; ask for less."),
    ],
)
def test_a_refusal_is_a_sentence(settings, error, sentence):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "MAX_RESPONSE": 100}

    def answer():
        if error:
            raise error
        return "x" * 200

    with pytest.raises(ToolError, match=f"^{sentence}$"):
        get(prompt_of(answer))


@pytest.mark.asyncio
async def test_an_async_function_waits_outside_of_the_thread():
    async def later(city: str) -> str:
        return city

    async def refuse() -> str:
        raise Http404

    rights = rights_of()
    pending = prompt_of(later).get(context_of(rights), rights, {"city": "Bonn"})
    assert isinstance(pending, PendingCall)
    result = pending.finish(await pending.awaitable)
    assert result.messages == [PromptMessage(content=TextContent("Bonn"))]

    pending = prompt_of(refuse).get(context_of(rights), rights, {})
    assert isinstance(pending, PendingCall)
    with pytest.raises(ToolError, match="no such object"):
        await pending.awaitable


# Rights


def of_request(request: HttpRequest) -> bool:
    return request.user.pk == 1


@pytest.mark.parametrize(
    ("permission", "rights", "exists"),
    [
        (None, rights_of(user()), True),
        (None, rights_of(user(is_staff=False)), False),
        (None, rights_of(user(), read_only=True), True),
        (None, rights_of(user(), scopes=()), False),
        (None, rights_of(user(), scopes=(READ,)), True),
        (None, rights_of(user(), models=frozenset({"shop.order"})), False),
        ("shop.view_order", rights_of(user(permissions=["shop.view_order"])), True),
        ("shop.view_order", rights_of(user()), False),
        (of_request, rights_of(user(is_staff=False)), True),
        (of_request, rights_of(user(pk=2)), False),
    ],
)
def test_who_knows_of_a_prompt(permission, rights, exists):
    assert prompt_of(brief, permission=permission).exists_for(rights) is exists


# Completion


def cities(request: HttpRequest, value: str) -> list[str]:
    assert request.user.pk == 1
    return ["Bonn", "Hamburg", "Bad Homburg", "Lisbon"]


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("color", "", ["blue", "red"]),
        ("color", "r", ["red"]),
        ("size", "", ["1", "2"]),
        ("tone", "W", ["warm"]),
        ("sure", "t", ["true"]),
        ("day", "2026", []),
        ("untyped", "", []),
        ("text", "bo", ["Bonn", "Lisbon"]),
        ("text", "ho", ["Bad Homburg"]),
        ("nothing", "", None),
    ],
)
def test_what_goes_on_from_a_value(name, value, found):
    made = prompt_of(everything, completions={"text": cities})

    assert made.complete(rights_of(user()), name, value, given={}) == found


def test_a_completion_that_is_refused_offers_nothing_and_a_bug_is_one():
    def refuse(request, value):
        raise PermissionDenied

    def fail(request, value):
        raise RuntimeError

    made = prompt_of(everything, completions={"text": refuse, "untyped": fail})

    assert made.complete(rights_of(), "text", "", given={}) == []
    with pytest.raises(RuntimeError):
        made.complete(rights_of(), "untyped", "", given={})
