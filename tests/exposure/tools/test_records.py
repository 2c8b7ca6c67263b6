"""The generic tools, as a client calls them."""

from __future__ import annotations

from urllib.parse import urlsplit

import jsonschema_rs
import msgspec
import pytest
from django.conf.urls.i18n import i18n_patterns
from django.contrib import admin
from django.test.utils import override_script_prefix
from django.urls import path
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.admin_bridge.compat import Place
from mcp_django.exposure.primitives import BUILT_IN
from mcp_django.exposure.tools.actions import arguments_of
from mcp_django.exposure.tools.records import RECORD_TOOLS, with_admin_url
from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from tests.clients import CheckedClient, browser_of
from tests.exposure.test_permissions import rights_of
from tests.shop.admin import OrderAdmin
from tests.shop.mcp import OrderExposure
from tests.shop.models import Customer, Memo, Order

pytestmark = pytest.mark.django_db


def test_every_tool_is_read_only_and_described_and_all_are_found_by_who_may_do_everything(
    client, make_client, configure
):
    tools = [tool for tool in client.list_tools() if tool["name"] in BUILT_IN]
    configure(KEEP_CHANGES=["shop"])
    ExposedModel.objects.create(label="shop.customer", level=Level.WRITE)
    found = [
        tool for tool in make_client(is_superuser=True).list_tools() if tool["name"] in BUILT_IN
    ]

    assert set(RECORD_TOOLS) == BUILT_IN == {tool["name"] for tool in found}
    assert len(msgspec.json.encode(found)) <= 12 * 1024
    # Four characters are about a token.
    assert len(msgspec.json.encode(tools)) < 1700 * 4
    assert len(tools) == 9
    for tool in tools:
        assert tool["annotations"] == {"readOnlyHint": True, "openWorldHint": False}
        assert tool["description"]
        assert "additionalProperties" not in tool["inputSchema"]
        assert "required" in tool["inputSchema"]


def test_the_sizes_of_pages_that_a_client_reads_are_those_of_the_settings(client, settings):
    def described():
        tools = client.tools()
        return tools["find_records"]["inputSchema"]["properties"]["limit"]["description"]

    before = described()
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "PAGE_SIZE": 7, "MAX_PAGE_SIZE": 70}

    assert before == "25 without it, at most 200."
    assert described() == "7 without it, at most 70."


@st.composite
def valid(draw, schema):
    """A value that a schema of ours allows."""
    if "anyOf" in schema:
        return draw(valid(draw(st.sampled_from(schema["anyOf"]))))
    match schema.get("type"):
        case "object":
            return draw(objects(schema))
        case "array":
            items, most = valid(schema["items"]), schema.get("maxItems", 3)
            return draw(st.lists(items, max_size=min(most, 3)))
        case "string":
            return draw(st.text(max_size=5) | st.sampled_from(["{}", "[1]", "5"]))
        case "integer":
            whole = st.integers(-(2**60), 2**60)
            return draw(whole | st.integers(-(2**20), 2**20).map(float))
        case "boolean":
            return draw(st.booleans())
    return draw(st.none() | st.booleans() | st.integers() | st.text(max_size=3))


@st.composite
def objects(draw, schema):
    properties = schema.get("properties", {})
    required = [*schema.get("required", ())]
    optional = [name for name in properties if name not in required and draw(st.booleans())]
    made = {name: draw(valid(properties[name])) for name in [*required, *optional]}
    others = schema.get("additionalProperties", {})
    if others is not False:
        inner = valid(others if isinstance(others, dict) else {})
        made |= draw(st.dictionaries(st.text(max_size=3), inner, max_size=2))
    return made


READERS = {
    **{name: tool.arguments for name, tool in RECORD_TOOLS.items()},
    **{place.name: arguments_of("ship", place) for place in Place},
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_what_the_schema_of_a_tool_of_ours_allows_is_read(name, data):
    reader = READERS[name]
    # Other names are refused.
    arguments = data.draw(valid({**reader.schema, "additionalProperties": False}))
    assert jsonschema_rs.is_valid(reader.schema, arguments)

    read = reader.read(arguments, None)

    assert read.keys() == reader.schema["properties"].keys()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("find_records", {"limit": 1}), ("find_records", {"limit": 50}), ("get_record", {"pk": 1})],
    ids=str,
)
def test_records_take_one_query_however_many_they_are(
    client, django_assert_num_queries, tool, arguments
):
    customer = Customer.objects.create(name="Ada", country="FR")
    Order.objects.bulk_create(Order(pk=n, number=f"N{n}", customer=customer) for n in range(1, 61))
    client.data(tool, model="shop.order", **arguments)

    with django_assert_num_queries(1):
        client.data(tool, model="shop.order", **arguments)


def test_the_text_of_a_record_says_when_it_was_changed(client, revision, monkeypatch):
    monkeypatch.setattr(OrderExposure, "modified_field", "placed_at")
    order = Order.objects.create(number="A1", placed_at="2026-01-31T12:00:00Z")

    call = {"name": "get_record", "arguments": {"model": "shop.order", "pk": order.pk}}
    (text,) = client.request("tools/call", call)["content"]

    told = "2026-01-31T12:00Z" if revision.features.last_modified else None
    assert text.get("annotations", {}).get("lastModified") == told


# The address of a record's page in the admin


def shown(client, order, **arguments):
    """The record as get_record shows it."""
    return client.data("get_record", model="shop.order", pk=order.pk, **arguments)


@pytest.fixture
def order(db):
    return Order.objects.create(number="A1")


@pytest.mark.parametrize("public_url", ["", "https://shop.example.com"])
def test_staff_get_the_address_of_the_page(client, staff, order, settings, public_url):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "PUBLIC_URL": public_url}
    page = f"/admin/shop/order/{order.pk}/change/"

    by_text = client.data("get_record", model="shop.order", pk=str(order.pk), fields=["number"])

    address = f"{public_url}{page}"
    assert shown(client, order)["admin_url"] == address
    assert by_text == {"number": "A1", "admin_url": address}
    assert browser_of(staff).get(page).status_code == 200


class PagesByLanguage:
    urlpatterns = i18n_patterns(path("admin/", admin.site.urls))


def test_each_language_has_its_own_address(client, order, settings):
    settings.ROOT_URLCONF = PagesByLanguage

    for language in ("de", "en", "de"):
        with translation.override(language):
            found = urlsplit(shown(client, order)["admin_url"])
            assert found.path == f"/{language}/admin/shop/order/{order.pk}/change/"


def test_a_site_below_a_prefix_has_its_own_address_and_a_column_of_that_name_stays(
    staff, client, order
):
    rights = rights_of(staff)

    def added_to(record):
        return with_admin_url(rights, rights.model_admin(Order), order.pk, record)

    with override_script_prefix("/site/"):
        found = added_to(b'{"number":"A1"}')

    path_below = urlsplit(msgspec.json.decode(found)["admin_url"]).path
    assert path_below == f"/site/admin/shop/order/{order.pk}/change/"
    assert urlsplit(shown(client, order)["admin_url"]).path == path_below.removeprefix("/site")
    assert added_to(b'{"admin_url":"own"}') == b'{"admin_url":"own"}'


def test_there_is_no_address_elsewhere_and_where_there_is_no_page(client, order, settings):
    memo = Memo.objects.create(text="a", code="a")

    texts = [
        client.call_tool("find_records", model="shop.order").text,
        client.call_tool("read_resource", uri=f"django://objects/shop.order/{order.pk}").text,
        # It has no admin.
        client.call_tool("get_record", model="shop.memo", pk=memo.pk).text,
    ]
    settings.ROOT_URLCONF = "tests.sites.plain_urls"
    texts.append(client.call_tool("get_record", model="shop.order", pk=order.pk).text)

    assert not any("admin_url" in text for text in texts)


def open_to_all(monkeypatch):
    """Orders whose exposure decides by itself, so that the admin does not."""
    monkeypatch.setattr(
        OrderExposure, "get_queryset", lambda self, request: Order.objects.all(), raising=False
    )


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        ("has_view_or_change_permission", lambda self, request, obj=None: False),
        ("has_view_permission", lambda self, request, obj=None: obj is None),
        ("has_view_permission", lambda self, request, obj=None: 1 / 0),
        ("get_queryset", lambda self, request: Order.objects.none()),
    ],
    ids=["neither", "not this one", "a rule that fails", "not among the rows"],
)
def test_who_cannot_open_the_page_gets_no_address(client, order, monkeypatch, method, rule):
    open_to_all(monkeypatch)
    assert "admin_url" in shown(client, order)

    monkeypatch.setattr(OrderAdmin, method, rule, raising=False)

    assert "admin_url" not in shown(client, order)


@pytest.mark.thorough
def test_who_is_not_staff_gets_no_address(make_user, order, monkeypatch):
    open_to_all(monkeypatch)

    assert "admin_url" not in shown(CheckedClient(user=make_user("bob", "view_order")), order)
