from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.exceptions import (
    ImproperlyConfigured,
    ObjectDoesNotExist,
    PermissionDenied,
    ValidationError,
)
from django.db import connection, connections
from django.http import Http404, HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

import mcp_django as mcp
from mcp_django.exceptions import AlreadyRegistered, ToolError
from mcp_django.exposure.primitives import Lane, PendingCall, Tool
from mcp_django.exposure.registry import Registry, registry
from mcp_django.exposure.tools.functions import FunctionTool, tool
from mcp_django.principal import ACTION, DELETE, READ, SCOPES, WRITE
from mcp_django.protocol.results import ToolAnnotations
from tests.exposure.function_tools import accepts, call, context_of, rights_of, text_of, tool_of
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


def staff(*permissions: str, **fields: Any) -> User:
    user = User.objects.create(username="ann", **{"is_staff": True, **fields})
    for codename in permissions:
        user.user_permissions.add(
            Permission.objects.get(codename=codename, content_type__app_label="shop")
        )
    return user


# Registration.


def test_the_decorator_returns_the_function_itself_with_and_without_options():
    offered = Registry()

    assert tool(registry=offered)(greet) is greet
    assert tool(registry=offered, name="welcome")(greet) is greet
    assert sorted(offered.tools) == ["greet", "welcome"]


def test_the_public_decorator_offers_the_tool_on_the_site():
    try:
        assert mcp.tool(greet) is greet
        made: Tool = registry.tools["greet"]
        assert made.lane is Lane.WORK
        assert repr(made) == "<FunctionTool greet>"
    finally:
        registry.remove_tool("greet")


@requirement("tools:names")
def test_a_name_that_is_taken_is_an_error_at_import():
    offered = Registry()
    tool(registry=offered)(greet)

    with pytest.raises(AlreadyRegistered, match="'greet'"):
        tool(registry=offered, name="greet")(add_memo)


def test_the_definition_is_made_once_and_says_everything():
    made = tool_of(greet, title="Greeting", read_only=True)

    definition = made.definition

    assert definition is made.definition
    assert (definition.name, definition.title) == ("greet", "Greeting")
    assert definition.description == "Greet somebody."
    assert definition.input_schema["properties"]["name"] == {
        "type": "string",
        "description": "Who is greeted.",
        "default": "you",
    }
    assert definition.output_schema is None
    assert accepts(definition.input_schema, {})


def test_lazy_texts_are_translated_when_they_are_read():
    made = tool_of(greet, title=_("Yes"), description=_("Delete"))

    with override("de"):
        german = made.definition

    assert (german.title, german.description) == ("Ja", "Löschen")
    assert (made.definition.title, made.definition.description) == ("Yes", "Delete")


def test_a_lazy_title_stands_beside_a_plain_description():
    assert tool_of(greet, title=_("Yes")).definition.description == "Greet somebody."


@requirement("tools:hints")
@pytest.mark.parametrize(
    ("options", "expected", "scope"),
    [
        ({}, (False, True, False, False), ACTION),
        ({"read_only": True}, (True, False, True, False), READ),
        ({"destructive": False, "idempotent": True}, (False, False, True, False), WRITE),
        ({"destructive": True, "open_world": True}, (False, True, False, True), DELETE),
    ],
)
def test_every_annotation_is_explicit_and_the_scope_follows(options, expected, scope):
    made = tool_of(greet, **options)

    read_only, destructive, idempotent, open_world = expected
    assert made.scope == scope
    assert made.definition.annotations == ToolAnnotations(
        read_only=read_only,
        destructive=destructive,
        idempotent=idempotent,
        open_world=open_world,
    )


def test_a_tool_cannot_be_read_only_and_destructive():
    with pytest.raises(ImproperlyConfigured, match="not both"):
        tool_of(greet, read_only=True, destructive=True)


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


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (camelCase, r'name="camel_case"'),
        (positional, r"positional-only\. Arguments arrive by name"),
        (many, r"\*args: '?int'?, which is variadic positional"),
        (named, r"\*\*kwargs: '?int'?, which is variadic keyword"),
        (bare, r"a of .*bare\(\) has no type.*a: str"),
        (ctx, r"Annotate it: ctx: mcp\.Context"),
        (later, r"'Address' is not defined.*TYPE_CHECKING"),
        (promised, r"'Address' is not defined.*TYPE_CHECKING"),
        (yielding, "yields"),
        (yielding_async, "yields"),
        (Holder.method, "is a method"),
        (Holder, "decorates functions"),
        (staticmethod(greet), "decorates functions"),
    ],
)
def test_a_function_that_json_cannot_call_is_refused_with_what_to_do(function, says):
    with pytest.raises(ImproperlyConfigured, match=says):
        tool(registry=Registry(), description="Something.")(function)


def test_a_type_from_inside_a_function_is_refused_at_registration():
    class Local: ...

    def find(value: Local) -> None: ...

    with pytest.raises(ImproperlyConfigured, match="not inside a function"):
        tool_of(find)


@requirement("definitions:described")
def test_a_tool_without_a_description_is_refused():
    with pytest.raises(ImproperlyConfigured, match="Give the function a docstring"):
        tool(registry=Registry())(undocumented)


@pytest.mark.parametrize("permission", ["", "view_order", ".view_order", "shop."])
def test_a_permission_that_is_none_is_refused(permission):
    with pytest.raises(ImproperlyConfigured, match="is not a permission"):
        tool_of(greet, permission=permission)


# Who may know of it.


def test_without_a_permission_active_staff_have_the_tool():
    made = tool_of(greet)

    assert made.exists_for(rights_of(User(is_staff=True)))
    assert not made.exists_for(rights_of(User(is_staff=False)))
    assert not made.exists_for(rights_of(User(is_staff=True, is_active=False)))
    assert not made.exists_for(rights_of())


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ({}, ACTION),
        ({"read_only": True}, READ),
        ({"destructive": True}, DELETE),
        ({"destructive": False}, WRITE),
    ],
)
def test_a_tool_needs_its_scope(options, needed):
    made = tool_of(greet, **options)
    user = User(is_staff=True)
    others = tuple(
        scope for scope in SCOPES if scope != needed and (needed != READ or scope == ACTION)
    )

    assert made.exists_for(rights_of(user, scopes=(needed,)))
    assert not made.exists_for(rights_of(user, scopes=others))


def test_a_read_only_credential_or_site_has_no_tool_that_writes(settings):
    user = User(is_staff=True)
    reads, writes = tool_of(greet, read_only=True), tool_of(greet)

    assert reads.exists_for(rights_of(user, read_only=True))
    assert not writes.exists_for(rights_of(user, read_only=True))

    settings.MCP_DJANGO = {"READ_ONLY": True}
    assert not writes.exists_for(rights_of(user))


@pytest.mark.django_db
def test_a_permission_decides_whoever_is_staff():
    made = tool_of(greet, permission="shop.view_order")

    assert not made.exists_for(rights_of(staff()))

    User.objects.all().delete()
    assert made.exists_for(rights_of(staff("view_order", is_staff=False)))


def test_a_callable_decides_by_the_request():
    made = tool_of(greet, permission=lambda request: request.user.username)

    assert made.exists_for(rights_of(User(username="ann"))) is True
    assert made.exists_for(rights_of(User())) is False


def test_a_callable_that_fails_hides_its_tool_and_is_logged(caplog):
    made = tool_of(greet, permission=lambda request: 1 / 0)

    assert not made.exists_for(rights_of(User()))
    assert "greet" in caplog.text
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("permission", "exists"),
    [
        ("shop.view_order", True),
        ("Shop.view_Order", True),
        ("shop.view_customer", False),
        ("shop.mark_paid_order", False),
        ("other.view_order", False),
        ("shop.order", False),
        (None, False),
        (lambda request: True, False),
    ],
)
def test_a_credential_held_to_models_has_only_tools_about_them(permission, exists):
    made = tool_of(greet, permission=permission)
    held = rights_of(User(is_superuser=True, is_staff=True), models=frozenset({"shop.order"}))

    assert made.exists_for(held) is exists


# Calling it.


def test_request_and_context_are_passed_and_are_no_arguments():
    seen: list[Any] = []

    def look(asked: HttpRequest, ctx: mcp.Context | None = None, n: int = 1) -> None:
        seen.extend([asked, ctx, n])

    made, rights = tool_of(look), rights_of()
    context = context_of(rights)

    result: Any = made.call(context, rights, {"n": 2})

    assert text_of(result) == "Done."
    assert seen == [rights.request, context, 2]
    assert list(made.definition.input_schema["properties"]) == ["n"]


def test_a_decorated_function_is_read_through_its_decorator():
    @functools.wraps(greet)
    def loud(*args: Any, **kwargs: Any) -> str:
        return greet(*args, **kwargs).upper()

    assert text_of(call(tool_of(loud), {"name": "ann"})) == "HELLO ANN."


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


def failing(error: Exception) -> FunctionTool:
    def fail() -> str:
        raise error

    return tool_of(fail)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ToolError("Closed on Sundays."), "Closed on Sundays."),
        (PermissionDenied("user 5 lacks x"), "You may not do this."),
        (Http404("No row 5 in secret"), "There is no such object."),
        (ObjectDoesNotExist("secret"), "There is no such object."),
        (Memo.DoesNotExist("secret"), "There is no such object."),
        (ValidationError(["Too low.", "Too odd."]), "Too low. Too odd."),
        (ValidationError({"total": ["Too low."], "__all__": ["No."]}), "total: Too low. No."),
        (ValidationError("x" * 5000), "x" * 2000),
    ],
)
def test_a_refusal_of_the_function_is_a_sentence(error, sentence):
    with pytest.raises(ToolError) as caught:
        call(failing(error))

    assert str(caught.value) == sentence


def test_a_refusal_of_an_async_function_is_a_sentence_too():
    async def fail() -> str:
        raise PermissionDenied("secret")

    with pytest.raises(ToolError, match=r"^You may not do this\.$"):
        asyncio.run(_await(call(tool_of(fail)).awaitable))


def test_any_other_exception_passes_untouched():
    error = RuntimeError("a bug")

    with pytest.raises(RuntimeError) as caught:
        call(failing(error))

    assert caught.value is error


# Transactions.


@pytest.mark.django_db(transaction=True)
def test_an_atomic_tool_leaves_nothing_behind_when_it_fails():
    with pytest.raises(ToolError):
        call(tool_of(add_memo), {"code": "kept"})
    with pytest.raises(ToolError):
        call(tool_of(add_memo, atomic=True), {"code": "gone"})

    assert list(Memo.objects.values_list("code", flat=True)) == ["kept"]


@pytest.mark.django_db(transaction=True)
def test_atomic_requests_covers_tools(monkeypatch):
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)

    with pytest.raises(ToolError):
        call(tool_of(add_memo), {"code": "gone"})

    assert not Memo.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_cannot_be_given_is_not_done_either(settings):
    def write() -> str:
        Memo.objects.create(code="gone")
        return "x" * 1000

    settings.MCP_DJANGO = {"MAX_RESPONSE": 100}

    with pytest.raises(ToolError, match="too long"):
        call(tool_of(write, atomic=True))

    assert not Memo.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_without_atomic_there_is_no_transaction():
    def look() -> bool:
        return connection.in_atomic_block

    assert text_of(call(tool_of(look))) == '{"result":false}'
    assert text_of(call(tool_of(look, atomic=True))) == '{"result":true}'


def test_an_async_tool_cannot_be_atomic():
    async def wait() -> None: ...

    with pytest.raises(ImproperlyConfigured, match="is async"):
        tool_of(wait, atomic=True)
