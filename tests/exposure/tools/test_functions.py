from __future__ import annotations

import asyncio
import functools
import itertools
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured, PermissionDenied, ValidationError
from django.db import connections
from django.http import Http404, HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

from mcp_django.exceptions import ToolError
from mcp_django.exposure.primitives import PendingCall
from mcp_django.exposure.registry import Registry
from mcp_django.exposure.tools.functions import tool
from mcp_django.principal import ACTION, DELETE, READ, WRITE
from mcp_django.protocol.render import tool_definition
from mcp_django.protocol.revisions import MODERN
from tests.exposure.function_tools import accepts, call, rights_of, text_of, tool_of
from tests.exposure.functions.test_signatures import Line, Period
from tests.shop.models import Memo
from tests.spec import requirement

pytestmark = pytest.mark.django_db

if TYPE_CHECKING:
    from tests.exposure.functions.test_signatures import Address


def greet(name: str = "you") -> str:
    """Greet somebody.

    Args:
        name: Who is greeted.
    """
    return f"Hello {name}."


def add_memo(code: str) -> str:
    """Write a memo and fail."""
    Memo.objects.create(code=code)
    raise ToolError("No.")


# Registration.


def test_the_definition_says_everything_in_the_language_of_the_moment():
    made = tool_of(greet, title=_("Yes"), read_only=True)

    with override("de"):
        definition = made.definition

    assert (definition.name, definition.title) == ("greet", "Ja")
    assert made.definition.title == "Yes"
    assert definition.description == "Greet somebody."
    told = {"type": "string", "description": "Who is greeted.", "default": "you"}
    assert definition.input_schema["properties"]["name"] == told
    assert definition.output_schema is None
    assert accepts(definition.input_schema, {})


@requirement("tools:hints")
@pytest.mark.parametrize(
    ("options", "hints", "scope"),
    [
        ({}, {}, ACTION),
        ({"read_only": True}, {"readOnlyHint": True}, READ),
        ({"destructive": False}, {"destructiveHint": False}, WRITE),
        ({"destructive": True}, {}, DELETE),
        ({"idempotent": True}, {"idempotentHint": True}, ACTION),
    ],
)
@pytest.mark.parametrize("more", [{}, {"open_world": True}], ids=str)
def test_hints_say_what_clients_do_not_assume_and_the_scope_follows(options, hints, scope, more):
    """They assume that a tool writes, destroys, does more each time, and knows the world."""
    made = tool_of(greet, **options, **more)

    told = tool_definition(made.definition, MODERN[-1].features)["annotations"]
    assert made.scope == scope
    assert told == (hints if more else {**hints, "openWorldHint": False})


def undocumented() -> None: ...
def camelCase() -> None: ...
def positional(a: int, /) -> None: ...
def many(*args: int) -> None: ...
def named(**kwargs: int) -> None: ...
def bare(a): ...
def ctx(ctx): ...
def later(address: Address) -> None: ...
def promised() -> Address | None: ...
def yielding() -> Any:
    yield 1


async def yielding_async() -> Any:
    yield 1


class Holder:
    def method(self, a: int) -> None: ...


async def wait() -> None: ...
def unresolved(value: int) -> None: ...


unresolved.__annotations__["value"] = "Nowhere"
Broken = msgspec.defstruct("Broken", [("x", "Nowhere")])


def no_data(value: Registry) -> None: ...
def broken_inside(value: Broken) -> None: ...
def complex_promise() -> complex: ...
def promised_rows() -> list[User]: ...
def promised_either() -> Line | Period: ...
def broken_promise() -> Broken: ...


DESCRIBED = {"description": "Something."}


@requirement("definitions:described")
@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (camelCase, DESCRIBED, r'name="camel_case"'),
        (positional, DESCRIBED, r"positional-only\. Arguments arrive by name"),
        (many, DESCRIBED, r"\*args: '?int'?, which is variadic positional"),
        (named, DESCRIBED, r"\*\*kwargs: '?int'?, which is variadic keyword"),
        (bare, DESCRIBED, r"a of .*bare\(\) has no type.*a: str"),
        (ctx, DESCRIBED, r"Annotate it: ctx: mcp\.Context"),
        *(
            (function, DESCRIBED, r"'Address' is not defined.*TYPE_CHECKING")
            for function in (later, promised)
        ),
        *((function, DESCRIBED, "yields") for function in (yielding, yielding_async)),
        (Holder.method, DESCRIBED, "is a method"),
        *(
            (function, DESCRIBED, "decorates functions")
            for function in (Holder, staticmethod(greet), functools.partial(greet))
        ),
        (unresolved, DESCRIBED, "not inside a function"),
        (no_data, DESCRIBED, "The argument value of the tool 'no_data' cannot be read from JSON"),
        *(
            (function, DESCRIBED, f"What the tool '{function.__name__}' returns")
            for function in (complex_promise, promised_rows, promised_either)
        ),
        *(
            (function, DESCRIBED, "'Nowhere' is not defined")
            for function in (broken_inside, broken_promise)
        ),
        (undocumented, {}, "Give the function a docstring"),
        *(
            (greet, {"permission": name}, "is not a permission")
            for name in ("", "view_order", ".view_order", "shop.")
        ),
        (greet, {"read_only": True, "destructive": True}, "not both"),
        (wait, {"atomic": True, **DESCRIBED}, "is async"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_what_to_do(function, options, says):
    with pytest.raises(ImproperlyConfigured, match=says):
        tool(registry=Registry(), **options)(function)


# Who may know of it.


def fails(request: HttpRequest) -> bool:
    return 1 / 0


def named_ann(request: HttpRequest) -> str:
    return request.user.username


WRITES, READS, ORDERS = {}, {"read_only": True}, frozenset({"shop.order"})
BOSS = User(is_superuser=True)
VIEWS = {"permission": "shop.view_order"}


@pytest.mark.parametrize(
    ("options", "user", "credential", "exists"),
    [
        (WRITES, User(is_staff=True), {}, True),
        (WRITES, User(is_staff=False), {}, False),
        (WRITES, User(is_staff=True, is_active=False), {}, False),
        (WRITES, None, {}, False),
        # Scopes
        (WRITES, User(is_staff=True), {"scopes": (ACTION,)}, True),
        (WRITES, User(is_staff=True), {"scopes": (READ, WRITE, DELETE)}, False),
        (READS, User(is_staff=True), {"scopes": (READ,)}, True),
        (READS, User(is_staff=True), {"scopes": (ACTION,)}, False),
        ({"destructive": True}, User(is_staff=True), {"scopes": (DELETE,)}, True),
        ({"destructive": True}, User(is_staff=True), {"scopes": (READ, WRITE, ACTION)}, False),
        ({"destructive": False}, User(is_staff=True), {"scopes": (WRITE,)}, True),
        ({"destructive": False}, User(is_staff=True), {"scopes": (READ, DELETE, ACTION)}, False),
        (READS, User(is_staff=True), {"read_only": True}, True),
        (WRITES, User(is_staff=True), {"read_only": True}, False),
        ({"destructive": False}, User(is_staff=True), {"read_only": True}, False),
        # Permissions
        (VIEWS, User(pk=1, is_staff=True), {}, False),
        (VIEWS, BOSS, {}, True),
        ({"permission": named_ann}, User(username="ann"), {}, True),
        ({"permission": named_ann}, User(), {}, False),
        ({"permission": fails}, User(is_staff=True), {}, False),
        # A credential that is held to models
        (VIEWS, BOSS, {"models": ORDERS}, True),
        ({"permission": "Shop.view_Order"}, BOSS, {"models": ORDERS}, True),
        *(
            ({"permission": permission}, BOSS, {"models": ORDERS}, False)
            for permission in (
                *("shop.view_customer", "shop.mark_paid_order", "other.view_order", "shop.order"),
                bool,
            )
        ),
        (WRITES, User(is_superuser=True, is_staff=True), {"models": ORDERS}, False),
    ],
    ids=itertools.count(),
)
def test_a_tool_exists_for_those_who_may_call_it(options, user, credential, exists, caplog):
    assert tool_of(greet, **options).exists_for(rights_of(user, **credential)) is exists
    # A permission that fails is logged.
    is_broken = options.get("permission") is fails
    assert ("ZeroDivisionError" in caplog.text) is ("greet" in caplog.text) is is_broken


# Calling it.


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ToolError("Closed on Sundays."), "Closed on Sundays."),
        (PermissionDenied("user 5 lacks x"), "You may not do this."),
        *((kind("secret"), "There is no such object.") for kind in (Http404, Memo.DoesNotExist)),
        (ValidationError(["Too low.", "Too odd."]), "Too low. Too odd."),
        (ValidationError({"total": ["Too low."], "__all__": ["No."]}), "total: Too low. No."),
        (ValidationError("x" * 5000), "x" * 2000),
        # A bug
        (RuntimeError("a bug"), None),
    ],
)
def test_a_refusal_of_the_function_is_a_sentence_and_a_bug_passes(error, sentence, is_async):
    def fail() -> str:
        raise error

    async def fail_later() -> str:
        raise error

    made = tool_of(fail_later if is_async else fail)

    with pytest.raises(ToolError if sentence else type(error)) as caught:
        asyncio.run(_await(call(made).awaitable))

    assert str(caught.value) == (sentence or str(error))


def test_an_async_function_is_bound_first_and_awaited_by_others():
    async def wait(seconds: int) -> str:
        await asyncio.sleep(0)
        return f"Waited {seconds}."

    made = tool_of(wait)

    with pytest.raises(ToolError, match="Missing argument: seconds"):
        call(made)
    pending = call(made, {"seconds": 3})

    assert isinstance(pending, PendingCall)
    assert text_of(pending.finish(asyncio.run(_await(pending.awaitable)))) == "Waited 3."


async def _await(awaitable: Any) -> Any:
    return await awaitable


# Transactions.


def write_too_much(code: str) -> str:
    """Write a memo and say too much."""
    Memo.objects.create(code=code)
    return "x" * 1000


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("function", "options", "atomic_requests", "codes"),
    [
        (add_memo, {}, False, ["it"]),
        (add_memo, {"atomic": True}, False, []),
        (add_memo, {}, True, []),
        # An answer that cannot be given is not done either.
        (write_too_much, {"atomic": True}, False, []),
    ],
)
def test_an_atomic_tool_leaves_nothing_behind_when_it_fails(
    settings, monkeypatch, function, options, atomic_requests, codes
):
    settings.MCP_DJANGO = {"MAX_RESPONSE": 100}
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", atomic_requests)

    with pytest.raises(ToolError):
        call(tool_of(function, **options), {"code": "it"})

    assert [memo.code for memo in Memo.objects.all()] == codes
