from __future__ import annotations

import base64
import json
import re
import time
from contextlib import contextmanager
from html import unescape

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.models import LogEntry
from django.http import HttpRequest
from django.test import AsyncClient

import mcp_django as mcp
from mcp_django.admin.inspect.try_it import rows_in
from mcp_django.exposure.primitives import BUILT_IN, WRITES
from mcp_django.exposure.registry import registry
from mcp_django.models import CallRecord, ExposedModel, ExposedTool
from mcp_django.transports.threads import lanes
from tests.admin.looking import allow, many_models, post_text, text_of, url
from tests.clients import browser_of
from tests.shop.models import Customer, Memo, Order

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("recorded")]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def result_of(response):
    return response.context["result"]


# Who and how


def test_the_page_offers_what_the_person_has_and_nothing_else(trier):
    page = browser_of(trier).get(url("try_it"))

    assert "echo" in text_of(page)
    assert "pay" not in text_of(page).split()
    assert '<option value="django://objects/shop.order">' in page.content.decode()
    assert "shop.customer" not in page.content.decode()


@pytest.mark.parametrize("name", ["pay", "nothing", "<script>alert(1)</script>", "", "echo"])
def test_tools_that_are_not_there_or_off_or_not_for_the_person_say_one_thing(call, name):
    ExposedTool.objects.create(name="echo", enabled=False)

    response = call(name, number="A-1")

    assert "There is no tool" in text_of(response)
    assert "result" not in response.context
    assert b"<script>alert(1)" not in response.content


# Calls


def test_a_call_runs_as_the_person_and_shows_what_it_took(call, trier):
    response = call("echo", text="hello")

    result = result_of(response)
    assert json.loads(result["json"]) == {"text": "hello", "user": "trier"}
    assert result["bytes"] > 50
    assert result["milliseconds"] >= 0
    assert result["bytes"] / 5 < result["tokens"] < result["bytes"] / 3
    assert "Bytes" in text_of(response)
    assert "Tokens (about)" in text_of(response)


def test_a_post_changes_and_is_recorded_as_any_call_and_a_get_calls_nothing(call, trier, recorded):
    order = Order.objects.create(number="A-1")
    allow(trier, "shop.change_order")
    asked = {"tool": "pay", "arguments": '{"number": "A-1"}'}
    assert "result" not in browser_of(trier).get(url("try_it"), asked).context
    order.refresh_from_db()
    assert order.status == Order.Status.NEW

    response = call("pay", number="A-1")
    recorded.write()

    assert "A-1 is paid." in text_of(response)
    order.refresh_from_db()
    assert order.status == Order.Status.PAID
    record = CallRecord.objects.get(method="tools/call")
    assert (record.user, record.target, record.outcome) == (trier, "pay", "done")
    assert record.client == "Django admin 1"
    assert not LogEntry.objects.exists()


TURNED_AWAY = {"RUN_MIDDLEWARE": ["tests.admin.test_inspect.turn_away"]}
DEEP = {"model": "shop.order", "filters": {"a": {"b": {"c": [[1]]}}}}
#: Settings, a tool and its arguments, and what the page says of the call.
REFUSALS = [
    ({}, "fail", {"kind": "tool"}, "There is no such day. Ask for one that exists."),
    ({}, "fail", {"kind": "bug"}, "Internal error"),
    ({"CALLS_PER_MINUTE": 0}, "echo", {"text": "a"}, "Too many requests"),
    ({"MAX_DEPTH": 4}, "find_records", DEEP, "nested deeper"),
    (TURNED_AWAY, "echo", {"text": "a"}, "answers in place of the call"),
]


@pytest.mark.parametrize(("options", "tool", "arguments", "words"), REFUSALS)
def test_a_call_that_is_refused_says_so_as_it_does_to_a_model(
    call, configure, options, tool, arguments, words
):
    configure(**options)

    response = call(tool, **arguments)

    assert words in text_of(response)
    assert b"secret-bug" not in response.content


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_a_tool_that_runs_too_long_is_left_alone(call, add_tool, configure):
    configure(TOOL_TIMEOUT=0.2)
    over = []

    def sleepy(ctx: mcp.Context) -> str:
        """Sleep."""
        while not ctx.cancelled.is_set():
            time.sleep(0.01)
        over.append(True)
        return ""

    add_tool(sleepy)
    with real_lanes():
        text = text_of(call("sleepy"))

    assert "not done within 0.2 seconds" in text
    assert over


def test_a_busy_server_says_so(call, configure):
    configure(MAX_WAITING=0)
    with real_lanes():
        assert "The server is busy." in text_of(call("echo", text="x"))


@pytest.mark.django_db(transaction=True)
def test_a_call_that_breaks_in_middleware_says_a_number(trier, configure):
    configure(RUN_MIDDLEWARE=["tests.admin.test_try_it.breaks_calls"])

    browser = browser_of(trier, raise_request_exception=False)
    with real_lanes():
        response = browser.post(f"{url('try_it')}?tool=echo", {"arguments": '{"text": "x"}'})

    assert "Internal error" in text_of(response)
    assert b"secret" not in response.content


def breaks_calls(get_response):
    """Middleware that fails after the call, and not after the list before it."""

    def middleware(request):
        response = get_response(request)
        if getattr(response, "_mcp_reply", None) is not None:
            raise RuntimeError("secret")
        return response

    return middleware


@contextmanager
def real_lanes():
    """Calls run in threads of their own, as on a server."""
    own = lanes._lanes
    lanes.forget()
    try:
        yield
    finally:
        lanes.close()
        lanes._lanes = own


def test_code_of_the_site_gets_a_request_without_the_session_of_the_person(call, add_tool, trier):
    seen = []

    def peek(request: HttpRequest) -> str:
        """Look at the request."""
        seen.extend(dict(part) for part in (request.COOKIES, request.session, request.POST))
        seen.extend([request.body, type(request.user)])
        return "seen"

    add_tool(peek)
    call("peek")

    assert seen == [{}, {}, {}, b"", type(trier)]


def test_headers_that_repeat_arguments_are_sent(call, add_tool):
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
        "additionalProperties": False,
    }

    def regional(arguments: dict[str, object]) -> str:
        """Say where."""
        return f"In {arguments['region']}."

    add_tool(regional, input_schema=schema)

    assert "In Île." in text_of(call("regional", region="Île"))


# Arguments


def example_for(user, tool):
    page = browser_of(user).get(url("try_it"), {"tool": tool})
    return page.context["form"]["arguments"].value()


@pytest.fixture
def orders(admin_user):
    ExposedModel.objects.create(label="shop.order", level=5)
    customer = Customer.objects.create(name="Ada", country="FR")
    return [Order.objects.create(number=f"A-{n}", customer=customer) for n in range(3)]


# Nothing could be undone without a change before.
@pytest.mark.parametrize("tool", sorted(BUILT_IN - {"undo_change"}))
def test_the_example_of_a_generic_tool_works_and_changes_nothing(admin_user, orders, tool):
    before = list(Order.objects.values())

    result = result_of(post_text(admin_user, tool, example_for(admin_user, tool)))

    assert result["json"], result
    assert not result["is_error"]
    assert ('"dry_run": true' in result["json"]) is (tool in WRITES)
    assert list(Order.objects.values()) == before


def test_an_example_is_about_records_that_the_person_sees(trier, request):
    assert json.loads(example_for(trier, "find_records"))["model"] == "shop.memo"
    assert json.loads(example_for(trier, "echo")) == {"text": "text"}
    # An empty box is a call without arguments.
    assert "shop.order" in result_of(post_text(trier, "list_models", ""))["json"]
    orders = request.getfixturevalue("orders")

    assert json.loads(example_for(trier, "find_records"))["model"] == "shop.order"
    assert json.loads(example_for(trier, "get_record"))["pk"] in [order.pk for order in orders]


def test_an_example_of_a_site_is_taken_and_what_is_required_is_made_up(trier, add_tool):
    size = {"type": "integer", "minimum": 2}
    schema = {"type": "object", "properties": {"size": size, "note": {}}, "required": ["size"]}

    def book(arguments: dict[str, object]) -> str:
        """Book a room."""
        return ""

    def book_again(arguments: dict[str, object]) -> str:
        """Book it again."""
        return ""

    add_tool(book, input_schema=schema)
    add_tool(book_again, input_schema={**schema, "examples": [{"size": 4}]})

    assert json.loads(example_for(trier, "book")) == {"size": 2}
    assert json.loads(example_for(trier, "book_again")) == {"size": 4}


def test_a_page_opens_without_an_example_where_none_can_be_made(make_user, caplog):
    trier = make_user("trier", "try_tools", is_staff=True)
    with many_models(1) as [model]:
        registry.candidates[model].fields = ["nothing"]

        assert json.loads(example_for(trier, "find_records")) == {"model": "text"}
    assert "There is no example for the tool find_records." in caplog.text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{total: 5}", "This is not valid JSON."),
        ('{"a": 1, "a": 2}', "An object has the same key twice."),
        ("[" * 100 + "]" * 100, "This is nested deeper than"),
        ("[1]", "This is no JSON object, such as {}."),
        ("<script>", "This is not valid JSON."),
    ],
    ids=["words", "twice", "deep", "list", "markup"],
)
def test_what_is_no_json_object_calls_nothing_and_stays_in_the_box(trier, text, sentence):
    response = post_text(trier, "echo", text)

    assert sentence in text_of(response)
    assert "Nothing was called." in text_of(response)
    assert "result" not in response.context
    assert response.context["form"]["arguments"].value() == text
    assert b"<script>" not in response.content[response.content.index(b"<textarea") :]


# Tables


def test_records_are_a_table_with_the_answer_below_it(trier, orders):
    text = '{"model": "shop.order", "fields": ["number", "placed_at"], "order_by": ["number"]}'
    response = post_text(trier, "find_records", text)

    table = result_of(response)["table"]
    assert table["columns"] == ["number", "placed_at"]
    assert table["rows"] == [["A-0", "-"], ["A-1", "-"], ["A-2", "-"]]
    assert "<td>A-1</td>" in response.content.decode()
    assert json.loads(result_of(response)["json"])["columns"] == ["number", "placed_at"]


def test_a_list_of_objects_is_a_table_and_a_long_one_is_cut(call, add_tool):
    def count() -> list[dict[str, int | None]]:
        """Count."""
        return [{"n": n, "<b>": None} if n else {"n": n} for n in range(250)]

    add_tool(count)
    response = call("count")

    table = result_of(response)["table"]
    assert table["columns"] == ["n", "<b>"]
    assert table["rows"][:2] == [["0", None], ["1", "-"]]
    assert len(table["rows"]) == 200
    assert "And 50 more rows." in text_of(response)
    assert b"<b>" not in response.content


@pytest.mark.parametrize(
    "data",
    [
        {"columns": ["a"], "rows": [5]}, {"columns": "ab", "rows": [["a"]]},
        {"columns": [], "rows": []}, {"list": [{"a": 1}, 2]}, [], {}, [[1, 2]],
    ],
    ids=str,
)  # fmt: skip
def test_what_only_resembles_a_table_is_json(data):
    # Columns of related records are named by the relation.
    table = {"columns": ["id", {"lines": ["sku"]}, {}], "rows": [[1, {"count": 0}, 2]]}

    assert rows_in(data) == []
    assert rows_in(table) == [{"id": 1, "lines": {"count": 0}, "": 2}]


# Queries


def test_queries_are_for_superusers(call, admin_user):
    with_sql = call("find_records", by=admin_user, model="shop.order")
    without = call("find_records", model="shop.order")

    assert any("shop_order" in query["sql"] for query in result_of(with_sql)["queries"])
    assert "SELECT" in with_sql.content.decode()
    assert result_of(without)["queries"] is None
    assert "SELECT" not in without.content.decode()


@pytest.mark.thorough
def test_many_and_long_queries_are_cut(call, admin_user, add_tool):
    def ask() -> str:
        """Ask a lot."""
        for _ in range(300):
            Order.objects.filter(number="x" * 5000).exists()
        return "asked"

    add_tool(ask)
    queries = result_of(call("ask", by=admin_user))["queries"]

    assert len(queries) == 200
    assert max(len(query["sql"]) for query in queries) == 4001


# Results


def test_contents_are_drawn_or_described_and_text_whatever_they_hold(call, add_tool):
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"

    def contents(**content):
        return mcp.EmbeddedResource(contents=mcp.ResourceContents(**content))

    def show() -> mcp.ToolResult:
        """Show it all."""
        return mcp.ToolResult(
            content=[
                mcp.Text(evil),
                mcp.Text("x" * 150_000),
                contents(uri=f"x:{evil}", mime_type=evil, text=evil),
                contents(uri="x:a", mime_type="text/csv", blob=b"1234"),
                mcp.Image(data=PNG, mime_type="image/png"),
                mcp.Image(data=svg, mime_type="image/svg+xml"),
                mcp.Audio(data=b"12345", mime_type="audio/wav"),
                mcp.ResourceLink(uri="javascript:alert(1)", name="a link"),
            ]
        )

    add_tool(show, title=evil)
    response = call("show")
    page, text = response.content.decode(), text_of(response)

    assert f"data:image/png;base64,{base64.b64encode(PNG).decode()}" in unescape(page)
    for raw in ("data:image/svg", evil, "<script>alert"):
        assert raw not in page
    assert page.count("&lt;script&gt;alert(1)") >= 3
    assert not re.search(r'href="javascript', page)
    for words in (
        f"{len(PNG)} bytes of image/png",
        "5 bytes of audio/wav",
        "4 bytes of text/csv",
        "resource_link",
        "and 50000 more characters",
    ):
        assert words in text


def test_a_text_beside_structured_content_is_shown_unless_it_says_the_same(call, add_tool):
    def both() -> mcp.ToolResult:
        """Say two things."""
        same = mcp.Text('{"a": 1}')
        contents = mcp.ResourceContents(uri="x:a", mime_type="application/json", text="{")
        other = mcp.EmbeddedResource(contents=contents)
        return mcp.ToolResult(
            content=[mcp.Text("In words."), same, other], structured={"a": 1}, has_structured=True
        )

    add_tool(both)
    blocks = result_of(call("both"))["blocks"]

    assert [block["text"] for block in blocks] == ["In words.", "{"]


# Resources


def test_a_resource_is_read_as_oneself(trier, recorded):
    Memo.objects.create(text="Buy <b>milk</b>", code="milk")

    response = browser_of(trier).post(url("try_it"), {"uri": "django://objects/shop.memo"})

    assert "Buy <b>milk</b>" in text_of(response) or "Buy  milk" in text_of(response)
    assert b"<b>milk" not in response.content
    recorded.write()
    assert CallRecord.objects.get(method="resources/read").user == trier


@pytest.mark.parametrize(
    "uri", ["django://objects/shop.customer", "django://objects/shop.nothing", "x:\n", "💥"]
)
def test_resources_that_are_not_there_and_not_for_the_person_say_one_thing(trier, uri):
    response = browser_of(trier).post(url("try_it"), {"uri": uri})

    assert "Resource not found." in text_of(response)


# Servers


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("tool", ["echo", "echo_later"])
def test_tools_of_both_kinds_are_tried_under_asgi(trier, tool):
    browser = AsyncClient()
    browser.force_login(trier)

    with real_lanes():
        response = async_to_sync(browser.post)(
            f"{url('try_it')}?tool={tool}", {"arguments": '{"text": "hello"}'}
        )

    assert '"text": "hello"' in result_of(response)["json"]
