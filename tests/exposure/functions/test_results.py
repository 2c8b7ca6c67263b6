from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import User
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy as _

from mcp_django.exceptions import ToolError
from mcp_django.exposure.functions.results import NO_NUMBER, Results
from mcp_django.exposure.functions.signatures import MISSING
from mcp_django.protocol.content import ResourceLink, TextContent
from mcp_django.protocol.results import ToolResult
from tests.exposure.function_tools import accepts, data_of, text_of
from tests.exposure.functions.test_signatures import Address, Line, Period, Size, Status
from tests.spec import requirement

LINK = ResourceLink(uri="django://site", name="The site")
TEXT = TextContent("Hello.")


class Revenue(msgspec.Struct):
    total: Decimal
    label: str
    average: float | None = None


@dataclass
class Mean:
    value: float


def make(annotation: Any, value: Any) -> ToolResult:
    return Results("report", annotation).make(value, None)


@requirement("tools:output-schema", "tools:structured-text")
@pytest.mark.parametrize(
    ("annotation", "value", "data"),
    [
        (Revenue, Revenue(total=Decimal("1.50"), label="a"), {"total": "1.50", "label": "a"}),
        (Revenue, {"total": Decimal(2), "label": _("Total")}, {"total": "2", "label": "Total"}),
        (Revenue, Revenue(total=Decimal(1), label=mark_safe("<b>")), {"label": "<b>"}),
        (Revenue, Revenue(total=Decimal(1), label="", average=float("nan")), {"average": None}),
        (Address, Address(city="Paris"), {"city": "Paris", "tags": []}),
        (Period, {"since": date(2026, 1, 31)}, {"since": "2026-01-31"}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict, {"at": datetime(2026, 1, 31, tzinfo=UTC)}, {"at": "2026-01-31T00:00:00Z"}),
        (dict[str, list[Any]], {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        (list, [{"b": None}], {"result": [{"b": None}]}),
        (list[dict[str, Any]], [{"b": None}], {"result": [{"b": None}]}),
        (list[Line], [Line(number=1, price=Decimal(2))], {"result": [{"number": 1}]}),
        (int, 2**70, {"result": 2**70}),
        (bool, True, {"result": True}),
        (Status, Status.PAID, {"result": "paid"}),
        (list[Size], [Size.LARGE], {"result": [2]}),
        (uuid.UUID, uuid.UUID(int=1), {"result": "00000000-0000-0000-0000-000000000001"}),
        (Address | None, None, {"result": None}),
        (str | None, mark_safe("x"), {"result": "x"}),
    ],
)
def test_a_promised_value_is_structured_and_the_same_as_text(annotation, value, data):
    results = Results("report", annotation)

    result = results.make(value, None)

    sent = data_of(result)
    assert json.loads(text_of(result)) == sent
    assert results.schema
    assert accepts(results.schema, sent)
    assert {**sent, **data} == sent or sent["result"][0]["number"] == 1


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        *((str, value, "Hello.") for value in ("Hello.", _("Hello."))),
        (str, mark_safe("<b>"), "<b>"),
        *((annotation, None, "Done.") for annotation in (None.__class__, MISSING)),
        (MISSING, "Hello.", "Hello."),
        (MISSING, [1, Decimal("1.5")], '[1,"1.5"]'),
        (MISSING, [], "[]"),
        (MISSING, float("inf"), "null"),
        (Any, {"a": _("b")}, '{"a":"b"}'),
        (object, 1, "1"),
    ],
)
def test_text_and_values_without_a_promise_are_text(annotation, value, text):
    results = Results("report", annotation)

    result = results.make(value, None)

    assert results.schema is None
    assert not result.has_structured
    assert text_of(result) == text


@pytest.mark.parametrize(
    ("annotation", "value", "content"),
    [
        (ResourceLink, LINK, [LINK]),
        (ResourceLink | None, None, [TextContent("Done.")]),
        (list[ResourceLink], [LINK, LINK], [LINK, LINK]),
        (list[ResourceLink | TextContent], [LINK, TEXT], [LINK, TEXT]),
        (list[ResourceLink], [], []),
        (tuple[TextContent, ...], (TEXT,), [TEXT]),
        (MISSING, LINK, [LINK]),
        (MISSING, [TEXT, LINK], [TEXT, LINK]),
        (ToolResult, ToolResult(content=[TEXT]), [TEXT]),
        (ToolResult | str, "Hello.", [TEXT]),
        (MISSING, ToolResult(content=[TEXT]), [TEXT]),
    ],
)
def test_content_passes_as_it_is(annotation, value, content):
    results = Results("report", annotation)

    result = results.make(value, None)

    assert results.schema is None
    assert result.content == content
    assert not result.has_structured


def test_lazy_and_safe_texts_inside_content_become_plain():
    lazy: Any = _("Hello.")
    link = ResourceLink(uri="django://site", name=mark_safe("<b>"), title=lazy)

    result = make(ToolResult, ToolResult(content=[TextContent(lazy), link]))

    text, linked = json.loads(msgspec.json.encode(result.content))
    assert text["text"] == "Hello."
    assert (linked["name"], linked["title"]) == ("<b>", "Hello.")


def own(structured: Any, **options: Any) -> ToolResult:
    return ToolResult(structured=structured, has_structured=True, **options)


@pytest.mark.parametrize(
    ("annotation", "value", "data", "content"),
    [
        (ToolResult, own({"a": Decimal("1.5")}), {"a": "1.5"}, [TextContent('{"a":"1.5"}')]),
        (ToolResult, own({}, content=[TEXT]), {}, [TEXT]),
        (Address | ToolResult, own({"city": "Paris"}, content=[TEXT]), {"city": "Paris"}, [TEXT]),
        (list[int], own({"result": [1]}, content=[TEXT]), {"result": [1]}, [TEXT]),
        # An error needs to keep no promise.
        (Address, own({"why": 1}, content=[TEXT], is_error=True), {"why": 1}, [TEXT]),
    ],
)
def test_a_result_of_ones_own_keeps_its_data_and_its_content(annotation, value, data, content):
    result = make(annotation, value)

    assert data_of(result) == data
    assert result.content == content
    assert result.is_error is value.is_error
    # One without data passes whatever is promised.
    assert make(Address, ToolResult.error("Closed.")) == ToolResult.error("Closed.")


@requirement("tools:output-schema")
@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        *((str, value) for value in (None, 1)),
        (None.__class__, 1),
        *((int, value) for value in ("1", None)),
        (Address, {"tags": []}),
        (Mean, Mean(value="1")),  # type: ignore[arg-type]  # the mistake under test
        *((kind, [1]) for kind in (dict, dict[str, Any], dict[str, list[Any]])),
        *((kind, {"a": 1}) for kind in (list, list[dict[str, Any]])),
        (ResourceLink, "django://site"),
        (list[ResourceLink], [1]),
        (Address, ToolResult(content=[TEXT])),
        (Address, ToolResult(structured={"tags": []})),
        (list[int], ToolResult(structured={"other": [1]})),
        (list[int], ToolResult(structured=[1])),
        (list[int], ToolResult(structured={"result": ["1"]})),
    ],
)
def test_a_broken_promise_is_a_type_error_that_names_the_tool(annotation, value):
    with pytest.raises(TypeError, match="The tool 'report' promises"):
        make(annotation, value)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_what_is_no_number_is_null_and_said_where_a_number_is_promised(number):
    result = make(dict[str, float], {"a": float(number), "b": 1.5})

    assert result.is_error
    assert [block.text for block in result.content] == ['{"a":null,"b":1.5}', NO_NUMBER]


@pytest.mark.parametrize("annotation", [MISSING, dict, ToolResult], ids=str)
@pytest.mark.parametrize(
    "value",
    [
        User(username="secret"),
        SimpleLazyObject(lambda: User(username="secret")),
        User.objects.all(),
    ],
    ids=["instance", "lazy", "queryset"],
)
def test_instances_and_querysets_are_never_shown(annotation, value):
    returned = {"user": value}

    with pytest.raises(TypeError, match="Return plain data") as caught:
        make(annotation, ToolResult(structured=returned) if annotation is ToolResult else returned)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, "x" * 1000),
        (list[str], ["x" * 600]),
        (MISSING, [TextContent("x" * 1000)]),
        (MISSING, ToolResult(structured="x" * 1000, content=[TEXT])),
        # The text copy counts with its escapes.
        (dict[str, str], {"a": '"' * 210}),
    ],
)
def test_an_answer_longer_than_the_limit_is_refused(settings, annotation, value):
    settings.MCP_DJANGO = {"MAX_RESPONSE": 1000}
    shorter = {"a": '"' * 150}

    with pytest.raises(ToolError, match="The answer is too long; ask for less"):
        make(annotation, value)
    assert data_of(make(dict[str, str], shorter)) == shorter


@pytest.mark.parametrize("annotation", [dict[str, Any], list[Any]], ids=str)
def test_what_a_function_encoded_itself_has_to_be_json(annotation):
    spoiled = msgspec.Raw(b'{"a": {"b": 1')
    value = [spoiled] if annotation == list[Any] else {"x": spoiled}

    with pytest.raises(msgspec.DecodeError):
        make(annotation, value)
