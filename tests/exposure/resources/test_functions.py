"""Functions as resources: who finds them, what their URIs match, what they may answer."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import msgspec
import pytest
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.http import Http404, HttpRequest
from django.utils.translation import gettext_lazy

import mcp_django as mcp
from mcp_django.exposure.registry import Registry
from mcp_django.testing import ProtocolFailure
from tests.exposure.functions.test_signatures import Colour
from tests.shop.models import Order
from tests.spec import requirement

pytestmark = pytest.mark.django_db


@pytest.fixture
def add(add_resource):
    """Offer a function as a resource until the test ends."""
    return partial(add_resource, description="A test.")


def contents(client, uri):
    return client.request("resources/read", {"uri": uri})["contents"]


def text(client, uri):
    return contents(client, uri)[0]["text"]


def is_missing(client, uri):
    return client.error("resources/read", uri=uri).message == "Resource not found."


def listed(client):
    return {one["uri"]: one for one in client.list_resources()}


def templates(client):
    found = client.list_all("resources/templates/list", "resourceTemplates")
    return {one["uriTemplate"]: one for one in found}


# Listing


def greeting(request) -> str:
    """What the shop says."""
    return f"Hello {request.user}"


@requirement("resources:attributes")
def test_a_resource_is_listed_with_the_hints_that_the_revision_has_and_read(client, revision, add):
    add("shop://greeting", greeting, description=None)
    add(
        "shop://hello",
        greeting,
        name="hello",
        title=gettext_lazy("Yes"),
        mime_type="text/markdown",
        size=11,
        annotations=mcp.Annotations(audience=["user"], priority=0),
        last_modified=lambda request: datetime(2026, 1, 31, 12, tzinfo=UTC),
    )

    plain, hinted = (listed(client)[f"shop://{name}"] for name in ("greeting", "hello"))

    words = {"name": "greeting", "description": "What the shop says."}
    assert plain == {"uri": "shop://greeting", "mimeType": "text/plain", **words}
    hints = {"audience": ["user"], "priority": 0}
    if revision.features.last_modified:
        hints["lastModified"] = "2026-01-31T12:00:00+00:00"
    assert hinted["annotations"] == hints
    assert (hinted["name"], hinted["size"], hinted["mimeType"]) == ("hello", 11, "text/markdown")
    assert hinted.get("title") == ("Yes" if revision.features.titles else None)
    assert contents(client, "shop://greeting") == [
        {"uri": "shop://greeting", "mimeType": "text/plain", "text": "Hello staff"}
    ]


@requirement("resources:attributes")
@pytest.mark.parametrize(
    ("modified", "shown"),
    [
        (datetime(2026, 1, 31, 12), "2026-01-31T12:00:00+00:00"),
        (lambda request: None, None),
        (lambda request: 1 / 0, None),
    ],
    ids=["naive", "none", "broken"],
)
def test_when_it_was_changed_is_told_where_it_is_known(client, add, modified, shown):
    add("shop://greeting", greeting, last_modified=modified)

    hints = listed(client)["shop://greeting"].get("annotations", {})

    assert hints == ({"lastModified": shown} if shown else {})


def report(year: int, request: HttpRequest) -> dict[str, Any]:
    """What was sold in a year."""
    return {"year": year, "user": str(request.user)}


def test_a_resource_with_variables_is_a_template(client, revision, add):
    add("shop://reports/{year}", report)

    one = templates(client)["shop://reports/{year}"]

    assert one["mimeType"] == "application/json"
    assert one.keys() == {"uriTemplate", "name", "description", "mimeType"}
    assert "shop://reports/{year}" not in listed(client)
    answer = msgspec.json.decode(text(client, "shop://reports/2026"))
    assert answer == {"year": 2026, "user": "staff"}


# Rights


PERMISSIONS = {
    "no permission": "shop.change_order",
    "a function that says no": lambda request: False,
    "a function that fails": lambda request: 1 / 0,
}


@pytest.mark.parametrize("permission", PERMISSIONS.values(), ids=PERMISSIONS)
def test_what_a_caller_may_not_read_is_as_missing_as_what_nobody_has(client, add, permission):
    add("shop://secret", greeting, permission=permission)
    add("shop://secrets/{year}", report, permission=permission, completions={"year": ["2026"]})

    assert "shop://secret" not in listed(client)
    assert "shop://secrets/{year}" not in templates(client)
    for uri, other in (("shop://secret", "shop://nothing"), ("shop://secrets/1", "shop://x/1")):
        ours, theirs = (client.failure("resources/read", uri=address) for address in (uri, other))
        assert ours == theirs
        answers = {
            client.call_tool("read_resource", uri=address).text.replace(address, "URI")
            for address in (uri, other)
        }
        assert len(answers) == 1
    year, kind = {"name": "year", "value": ""}, "ref/resource"
    forbidden, unknown = (
        client.failure("completion/complete", ref={"type": kind, "uri": uri}, argument=year)
        for uri in ("shop://secrets/{year}", "shop://nothing/{year}")
    )
    assert forbidden == unknown


# Which function answers


def anything(path: str) -> str:
    return f"any {path}"


def test_a_literal_uri_comes_before_templates_and_the_longer_template_first(client, add):
    def one(name: str) -> str:
        return f"one {name}"

    def csv(name: str) -> str:
        return f"csv {name}"

    add("shop://{+path}", anything)
    add("shop://reports/{name}", one)
    add("shop://reports/latest", lambda: "latest")
    add("shop://reports/{name}.csv", csv)

    assert text(client, "shop://reports/latest") == "latest"
    assert text(client, "shop://reports/2026") == "one 2026"
    assert text(client, "shop://reports/2026.csv") == "csv 2026"
    assert text(client, "shop://reports/2026/01") == "any reports/2026/01"


def test_what_cannot_be_read_leaves_its_uri_to_another(client, add):
    add("shop://reports/latest", lambda: "latest", permission="shop.change_order")
    add("shop://secret/{year}", report, permission="shop.change_order")
    add("shop://reports/{year}", report)

    assert is_missing(client, "shop://reports/latest")

    add("shop://{+path}", anything)
    for path in ("reports/latest", "secret/2026"):
        assert text(client, f"shop://{path}") == f"any {path}"


def path(path: str) -> str:
    return path


@pytest.mark.parametrize(
    ("template", "rest"),
    [
        ("{path}", "a/b"), ("{path}", "a%2Fb"), ("{path}", ".."), ("{path}", "%2e%2e"),
        ("{path}", "a%5Cb"), ("{path}", "%00"), ("{path}", ""), ("{path}", "%zz"),
        ("{path}", "a?b"), ("{path}", "a#b"), ("{path}", "a b"), ("{path}", "a" * 5000),
        ("{+path}", "../etc/passwd"), ("{+path}", "a/../../etc/passwd"),
        ("{+path}", "a/%2e%2e/b"), ("{+path}", "a%2F..%2Fb"), ("{+path}", "%2Fetc/passwd"),
        ("{+path}", "a//b"), ("{+path}", "a%5C..%5Cb"), ("{+path}", "C:\\x"),
    ],
    ids=lambda value: value[:20],
)  # fmt: skip
def test_a_variable_never_leaves_its_place(client, add, template, rest):
    add(f"shop://pages/{template}", path)

    assert is_missing(client, f"shop://pages/{rest}")


@pytest.mark.parametrize(
    ("rest", "value"),
    [
        *(("a/b.md", "a/b.md"), ("a%2Fb", "a/b"), ("..a/b..", "..a/b..")),
        *(("caf%C3%A9/1%25", "café/1%"), ("a%252e", "a%2e"), ("what%3F", "what?")),
    ],
)
def test_a_variable_with_slashes_is_decoded_once(client, add, rest, value):
    add("shop://pages/{+path}", path)

    assert text(client, f"shop://pages/{rest}") == value


@pytest.mark.parametrize(
    ("annotation", "written", "value"),
    [
        (int, "7", 7),
        (date, "2026-01-31", date(2026, 1, 31)),
        (Decimal, "1.50", Decimal("1.50")),
        (Colour, "red", Colour.RED),
        (int | str, "x", "x"),
        (Annotated[int, msgspec.Meta(ge=1)], "7", 7),
        # What cannot be read as that does not exist.
        (int, "7x", None),
        (int, "9" * 400, None),
        (float, "nan", None),
        (bool, "perhaps", None),
        (Decimal, "1e999999", None),
        (Colour, "mauve", None),
        (Annotated[int, msgspec.Meta(ge=1)], "0", None),
    ],
    ids=str,
)
def test_variables_are_read_as_what_the_function_takes(client, add, annotation, written, value):
    seen = []

    def function(it):
        seen.append(it)
        return "ok"

    function.__annotations__ = {"it": annotation}
    add("shop://kinds/{it}", function)

    answer = client.call_tool("read_resource", uri=f"shop://kinds/{written}")

    assert answer.is_error is (value is None)
    assert seen == ([] if value is None else [value])


# Answers


ANSWERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "text": ("é", {"mimeType": "text/plain", "text": "é"}),
    "lazy": (gettext_lazy("Yes"), {"mimeType": "text/plain", "text": "Yes"}),
    "bytes": (
        b"\x00\xff",
        {"mimeType": "application/octet-stream", "blob": base64.b64encode(b"\x00\xff").decode()},
    ),
    "list": ([1, 2], {"mimeType": "application/json", "text": "[1,2]"}),
    "empty": ([], {"mimeType": "application/json", "text": "[]"}),
    "dict": ({"day": date(2026, 1, 31)}, {"text": '{"day":"2026-01-31"}'}),
    "lazy inside": ({"a": gettext_lazy("Yes")}, {"text": '{"a":"Yes"}'}),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_is_shown_as_what_it_is(client, add, kind):
    value, shown = ANSWERS[kind]
    add("shop://answer", lambda: value)

    (found,) = contents(client, "shop://answer")

    assert found == {"mimeType": "application/json", **shown, "uri": "shop://answer"}


def test_contents_of_the_functions_own_are_answered_as_they_are(client, add):
    one = mcp.ResourceContents(uri="shop://answer#1", mime_type="text/csv", text="a,b")
    two = mcp.ResourceContents(uri="shop://answer#2", mime_type="image/png", blob=b"\x89")
    add("shop://answer", lambda: [one, two])
    add("shop://one", lambda: one)

    assert [found["uri"] for found in contents(client, "shop://answer")] == [one.uri, two.uri]
    assert contents(client, "shop://one") == [one.as_wire()]


@pytest.mark.parametrize("mime_type", ["text/markdown", "image/svg+xml"])
def test_the_declared_type_is_that_of_texts_and_bytes(client, add, mime_type):
    add("shop://text", lambda: "x", mime_type=mime_type)
    add("shop://bytes", lambda: b"x", mime_type=mime_type)
    add("shop://json", lambda: {"a": 1}, mime_type=mime_type)

    for name in ("text", "bytes", "json"):
        assert contents(client, f"shop://{name}")[0]["mimeType"] == mime_type


RETURNS: dict[str, tuple[Any, str | None]] = {
    "str": (str, "text/plain"),
    "bytes": (bytes, "application/octet-stream"),
    "dict": (dict[str, int], "application/json"),
    "contents": (mcp.ResourceContents, None),
    "list of contents": (list[mcp.ResourceContents], None),
    "anything": (Any, None),
}


@pytest.mark.parametrize("kind", RETURNS)
def test_the_listed_type_follows_the_return_annotation(client, add, kind):
    annotation, mime_type = RETURNS[kind]

    def function():
        return "x"

    function.__annotations__ = {"return": annotation}
    add("shop://answer", function)

    assert listed(client)["shop://answer"].get("mimeType") == mime_type


def raising(error):
    def function() -> str:
        raise error

    return function


ABSENT = [Http404("secret"), Order.DoesNotExist("secret"), PermissionDenied("secret"), None]


@pytest.mark.parametrize("error", ABSENT, ids=repr)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_function_does_not_have_is_not_found(client, add, error, is_async):
    function = raising(error) if error else lambda: None

    async def later() -> Any:
        return function()

    add("shop://answer", later if is_async else function)

    assert is_missing(client, "shop://answer")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_refuses_in_words_that_reach_the_client(client, add, is_async):
    refuse = raising(mcp.ToolError("There are reports since 2020 only."))

    async def later() -> str:
        return refuse()

    add("shop://answer", later if is_async else refuse)

    found = client.error("resources/read", uri="shop://answer")
    assert (found.code, found.message) == (-32602, "There are reports since 2020 only.")
    assert found.data == {"uri": "shop://answer"}
    assert client.call_tool("read_resource", uri="shop://answer").is_error


@pytest.mark.parametrize("value", ["é" * 201, b"x" * 301])
def test_an_answer_that_is_too_long_is_refused_in_words_and_instances_are_never_shown(
    client, add, settings, caplog, value
):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "MAX_RESPONSE": 400}
    add("shop://answer", lambda: value)
    add("shop://orders", lambda: {"orders": Order(number="secret")})

    assert "longer than 400 bytes" in client.error("resources/read", uri="shop://answer").message
    found = client.error("resources/read", uri="shop://orders")
    assert (found.code, found.message) == (-32603, "Internal error")
    assert "JSON cannot say" in caplog.text


# Completion


def test_variables_are_completed_from_what_the_site_offers(client, add):
    def months(request, value, given):
        assert request.user.username == "staff"
        return [f"{given['year']}-{month:02}" for month in range(1, 13)]

    def monthly(year: int, month: str, kind: str) -> str:
        return ""

    template = "shop://{year}/{month}/{kind}"
    add(template, monthly, completions={"year": ["2025", "2026"], "month": months})

    assert client.complete(template, "year", "6") == ["2026"]
    last = client.complete(template, "month", "2026-1", year="2026")
    assert last == ["2026-10", "2026-11", "2026-12"]
    assert client.complete(template, "kind") == []
    # It needs a year, and says so with an exception.
    assert client.complete(template, "month") == []
    with pytest.raises(ProtocolFailure):
        client.complete(template, "day")


# Registration


def register(uri: Any, function: Any, **options):
    mcp.resource(uri, registry=Registry(), **options)(function)


def plain(year: int) -> str:
    """Any."""
    return str(year)


def none() -> str:
    """Any."""
    return ""


def parts():
    """Any."""
    yield "x"


STRANGE = "characters that no URI has"


@pytest.mark.parametrize(
    ("uri", "function", "sentence"),
    [
        ("shop://x", parts, "yields"),
        ("shop://x", lambda: "x", "no description"),
        ("django://site", none, "belongs to the models"),
        ("file:///etc/passwd", none, "the client itself can open"),
        ("https://example.com/x", none, "fetch from the web"),
        *((uri, none, "no URI") for uri in ("reports", "Shop://x", 7, "shop://" + "x" * 5000)),
        ("{year}://x", plain, "no URI"),
        *((f"shop://{text}", none, STRANGE) for text in ("x#y", "%zz", "é", "{year")),
        *((f"shop://{text}", plain, STRANGE) for text in ("{/year}", "{year:4}")),
        *(
            (f"shop://{text}", plain, "by itself")
            for text in ("{?year}", "{year,month}", "{year*}")
        ),
        ("shop://{year}/{year}", plain, "twice"),
        ("shop://{year}{month}", plain, "nothing stands between"),
        ("shop://{+path}/{year}", plain, "can only be the last"),
        ("shop://x", plain, "which its URI does not have"),
        ("shop://{year}/{month}", plain, "does not take 'month'"),
        ("shop://{year}", 7, "decorates functions"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)[:60]),
)
def test_a_uri_that_cannot_be_served_is_refused_at_start(uri, function, sentence):
    with pytest.raises(ImproperlyConfigured) as raised:
        register(uri, function)

    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    "annotation", [list[int], dict[str, int], int | None, Any, bytes | list[str], Order]
)
def test_an_argument_that_no_text_can_be_read_as_is_refused_at_start(annotation):
    def function(year):
        """Any."""

    function.__annotations__ = {"year": annotation}

    with pytest.raises(ImproperlyConfigured, match="part of a URI"):
        register("shop://{year}", function)


@requirement("resources:attributes")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        *(({"size": size}, "number of bytes") for size in (-1, True)),
        ({"annotations": mcp.Annotations(audience=["everybody"])}, "everybody"),
        ({"annotations": mcp.Annotations(audience="user")}, "audience"),
        ({"annotations": mcp.Annotations(priority=1.5)}, "from 0 to 1"),
        ({"annotations": mcp.Annotations(last_modified="yesterday")}, "last_modified"),
        ({"permission": "view_order"}, "not a permission for the resource 'shop://x'"),
        ({"completions": {"year": []}}, "'year'"),
        ({"size": 1, "uri": "shop://{year}"}, "has no size"),
    ],
    ids=str,
)
def test_hints_that_the_protocol_does_not_have_are_refused_at_start(options, sentence):
    function = plain if "uri" in options else none

    with pytest.raises(ImproperlyConfigured, match=sentence):
        register(**{"uri": "shop://x", "function": function, **options})
