"""Endpoints of a REST API as tools: their views decide, as for any client of the API."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.cache.backends.locmem import LocMemCache
from django.db import connections
from django.urls import include, path
from django.utils import translation
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.versioning import NamespaceVersioning

import mcp_django as mcp
from mcp_django.models import CallRecord
from mcp_django.subscriptions.admission import Verdict, admit_all
from mcp_django.testing import DECLINE, ProtocolFailure
from tests.decisions import decide_on_tool
from tests.exposure.test_permissions import rights_of
from tests.rest.views import (
    CustomerList,
    OrderViewSet,
    echo_path,
    half_done,
    router,
    stream,
)
from tests.shop.models import Customer, Order

pytestmark = [pytest.mark.needs("drf"), pytest.mark.django_db]
READS = {"order_list", "order_retrieve", "order_newest"}
WRITES = {"order_create", "order_partial_update", "order_destroy", "order_refund"}


@pytest.fixture(autouse=True)
def endpoints(offer):
    mcp.register_router(router)


@pytest.fixture
def orders():
    return [Order.objects.create(number=name) for name in ("a", "b", "c", "secret")]


def codenames(*verbs):
    return [f"{verb}_order" for verb in verbs]


@pytest.fixture
def client(make_client):
    """Of somebody who is no member of the staff: views ask for no more than they ask for."""
    return make_client(*codenames("view", "add", "change", "delete"), is_staff=False)


def listed(client):
    names = {tool["name"] for tool in client.list_tools()}
    return {name for name in names if name.startswith("order_") or name.endswith("endpoint")}


@pytest.mark.parametrize(
    ("verbs", "scopes", "names"),
    [
        (("add", "change", "delete"), None, READS | WRITES),
        (("change",), None, READS | {"order_partial_update"}),
        ((), None, READS),
        (("add", "change", "delete"), ["mcp:read"], READS),
    ],
)
def test_an_endpoint_exists_for_whom_the_permissions_of_its_view_let_in(
    make_client, verbs, scopes, names
):
    options = {} if scopes is None else {"scopes": scopes}
    client = make_client(*codenames(*verbs), is_staff=False, **options)

    # DjangoModelPermissions wants "add" for any POST, so for `refund` as well.
    assert listed(client) == names
    with pytest.raises(ProtocolFailure, match="Unknown tool"):
        make_client(is_staff=False).call_tool("order_create", values={"number": "n"})
    assert not Order.objects.exists()


def test_what_an_endpoint_takes_is_what_its_serializer_reads_but_files(client):
    schemas = {tool["name"]: tool["inputSchema"] for tool in client.list_tools()}

    values = schemas["order_refund"]["properties"]["values"]
    assert (values["properties"].keys(), values["required"]) == ({"reason"}, ["reason"])
    assert schemas["order_refund"]["properties"]["pk"] == {"type": "integer"}
    assert schemas["order_list"]["properties"].keys() == {"search", "ordering", "page"}
    # Only what is to change.
    assert schemas["order_partial_update"]["required"] == ["pk"]


def test_a_list_has_the_rows_filters_and_pages_of_the_view(client, orders):
    first = client.call_tool("order_list", ordering="-number").structured
    second = client.call_tool("order_list", **first["next"]).structured
    sought = client.call_tool("order_list", search="b").structured

    assert first["count"] == 3
    assert [order["number"] for order in first["results"]] == ["c", "b"]
    assert first["next"] == {"ordering": "-number", "page": "2"}
    assert [order["number"] for order in second["results"]] == ["a"]
    assert "next" not in second
    assert [order["number"] for order in sought["results"]] == ["b"]


def test_a_write_is_the_one_of_the_view_and_of_the_user(client, orders):
    made = client.call_tool("order_create", values={"number": "n", "total": 5}).structured
    client.call_tool("order_partial_update", pk=made["id"], values={"total": "6.50"})
    paid_back = client.call_tool("order_refund", pk=made["id"], values={"reason": "broken"})

    order = Order.objects.get(number="n")
    assert (order.margin, str(order.total)) == (User.objects.get().pk, "6.50")
    assert paid_back.structured == {"number": "n", "reason": "broken"}
    # What no serializer takes is refused, and not ignored as the framework does.
    assert client.call_tool("order_create", values={"number": "m", "margin": 1}).is_error


#: What clients deviate in: see docs/reference/clients.md.
HABITS = [
    ("order_list", {"search": None, "page": "2", "ordering": ""}, ["c"]),
    ("order_list", {"search": "b", "sessionId": "x"}, ["b"]),
    ("order_create", {"values": '{"number": "n"}'}, "n"),
]


@pytest.mark.parametrize(("tool", "arguments", "numbers"), HABITS)
def test_habits_of_clients_are_understood(client, orders, tool, arguments, numbers):
    answer = client.call_tool(tool, **arguments).structured

    sent = [row["number"] for row in answer["results"]] if "results" in answer else None
    assert (answer["number"] if sent is None else sent) == numbers


REFUSALS = [
    ("order_retrieve", {"pk": 4}, "No Order matches the given query."),
    ("order_retrieve", {"pk": 99}, "No Order matches the given query."),
    ("order_retrieve", {"pk": "../1"}, "There is no such object."),
    ("order_retrieve", {}, "The argument pk is missing."),
    ("order_retrieve", {"pk": 1, "margin": 2}, "Unknown argument 'margin'. It takes: pk."),
    ("order_list", {"page": 7}, "Invalid page."),
    ("order_retrieve", {"pk": 5}, "This order is closed."),
    ("stream", {}, "a file or a stream, which no tool can show"),
    ("order_create", {"values": {}}, "Argument values.number: This field is required."),
    ("order_create", {"values": {"number": "a"}}, "Argument values.number: order with this"),
    ("order_create", {"values": {"number": "x", "total": 9999}}, "values.total: Too dear."),
    ("order_create", {"values": {"number": "x", "pin": 1}}, "Unknown argument 'pin' in values."),
    ("order_create", {"values": [1]}, "The argument values must be an object."),
    ("order_refund", {"pk": 1, "values": {"reason": "x" * 99}}, "Argument values.reason: Ensure"),
]


@pytest.mark.parametrize(("tool", "arguments", "sentence"), REFUSALS)
def test_what_the_view_refuses_is_a_sentence(client, orders, tool, arguments, sentence):
    mcp.register_view(stream, route="stream/", name="stream")
    orders.append(Order.objects.create(number="closed"))
    if isinstance(arguments.get("pk"), int) and arguments["pk"] <= len(orders):
        arguments = {**arguments, "pk": orders[arguments["pk"] - 1].pk}

    answer = client.call_tool(tool, **arguments)

    assert answer.is_error
    assert sentence in answer.text
    assert "secret" not in answer.text


def test_a_person_is_asked_before_an_endpoint_deletes(make_client, orders):
    client = make_client(*codenames("delete"), answers={"confirmation": DECLINE})

    answer = client.call_tool("order_destroy", pk=orders[0].pk)

    assert "declined" in answer.text
    assert Order.objects.filter(pk=orders[0].pk).exists()


def test_staff_switch_an_endpoint_off_and_it_is_recorded_by_its_name(client, orders):
    decide_on_tool("order_newest", enabled=False)

    client.record = True
    client.call_tool("order_list")

    assert "order_newest" not in listed(client)
    assert CallRecord.objects.get(method="tools/call").target == "order_list"


@pytest.mark.parametrize("most", [6, 7])
def test_three_tools_stand_in_for_many_endpoints(configure, client, orders, most):
    configure(MOST_ENDPOINT_TOOLS=most)
    decide_on_tool("order_newest", enabled=False)

    if most == 7:
        assert listed(client) == (READS | WRITES) - {"order_newest"}
        return
    assert listed(client) == {"describe_endpoint", "call_endpoint"}
    offered = client.call_tool("list_endpoints").structured["endpoints"]
    assert offered.keys() == (READS | WRITES) - {"order_newest"}
    described = client.call_tool("describe_endpoint", endpoint="order_create").structured
    assert described["arguments"]["properties"]["values"]["required"] == ["number"]
    assert "status" in described["answers"]["properties"]
    arguments = {"values": {"number": "n"}}
    made = client.call_tool("call_endpoint", endpoint="order_create", arguments=arguments)
    assert made.structured["number"] == "n"
    client.record = True
    client.call_tool("call_endpoint", endpoint="order_list")
    client.call_tool("call_endpoint", endpoint="what nobody may keep")
    targets = CallRecord.objects.order_by("pk").values_list("target", flat=True)
    assert list(targets) == ["call_endpoint order_list", "call_endpoint"]
    for name in ("order_newest", "made_up", None):
        answer = client.call_tool("call_endpoint", endpoint=name)
        assert answer.text == "There is no such endpoint. list_endpoints names them."


def test_a_list_without_pages_ends_at_the_budget_of_an_answer(configure, make_client):
    configure(ANSWER_BUDGET=2_000)
    mcp.register_view(CustomerList.as_view(), route="api/customers/", name="customers")
    Customer.objects.bulk_create(Customer(name="x" * 50, country="DE") for _ in range(100))
    client = make_client()

    answer = client.call_tool("customers_get").structured

    assert 0 < len(answer["results"]) < 30
    assert answer["cut"].startswith(f"The first {len(answer['results'])} of 100 objects.")


def test_a_throttle_of_the_view_says_when_to_come_back(make_client):
    class Once(SimpleRateThrottle):
        rate = "1/min"
        cache = LocMemCache(uuid4().hex, {})

        def get_cache_key(self, request, view):
            return f"once-{request.user.pk}"

    class Throttled(CustomerList):
        throttle_classes = [Once]

    mcp.register_view(Throttled.as_view(), route="api/customers/", name="customers")
    client = make_client()

    first, second = client.call_tool("customers_get"), client.call_tool("customers_get")

    assert not first.is_error
    assert re.search(r"throttled.*Try again in \d+ seconds", second.text)


@pytest.mark.parametrize(("is_atomic", "kept"), [(True, 0), (False, 1)])
def test_with_atomic_requests_what_a_view_did_before_it_failed_is_undone(
    monkeypatch, client, is_atomic, kept
):
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", is_atomic)
    mcp.register_view(half_done, route="half/", name="half-done")

    answer = client.call_tool("half_done")

    assert answer.text == "Not like this."
    assert Customer.objects.count() == kept


@pytest.mark.needs("django_filters")
def test_the_parameters_of_a_filter_set_are_arguments(make_client, orders):
    from django_filters.rest_framework import DjangoFilterBackend

    class Filtered(OrderViewSet):
        filter_backends = [DjangoFilterBackend]
        filterset_fields = {"number": ["exact", "startswith"]}

    mcp.register_viewset(Filtered, actions=["list"], basename="filtered")
    client = make_client("view_order")

    sought = client.call_tool("filtered_list", number__startswith="b").structured

    assert [order["number"] for order in sought["results"]] == ["b"]


def test_a_view_is_asked_at_its_own_address(settings, client):
    mcp.register_view(echo_path, route="echo/<slug:word>/", name="echo-path")
    alone = client.call_tool("echo_path", word="a").structured
    settings.ROOT_URLCONF = (path("api/echo/<slug:word>/", echo_path, name="echo-path"),)
    routed = client.call_tool("echo_path", word="a").structured

    name = User.objects.get().get_username()
    assert alone == {"path": "http://testserver/echo/a/", "user": name, "version": None}
    assert routed == {**alone, "path": "http://testserver/api/echo/a/"}
    assert client.call_tool("echo_path", word="nowhere").text == "Not found."


def test_a_view_knows_the_version_of_its_namespace(settings, client, monkeypatch):
    monkeypatch.setattr(echo_path.cls, "versioning_class", NamespaceVersioning)
    here = ([path("echo/<slug:word>/", echo_path, name="echo-path")], "api")
    settings.ROOT_URLCONF = (path("v2/", include(here, namespace="v2")),)
    mcp.register_view(echo_path, route="echo/<slug:word>/", name="echo-path", namespace="v2")

    assert client.call_tool("echo_path", word="a").structured["version"] == "v2"


def test_definitions_are_in_the_language_of_the_moment(client):
    def read():
        tool = next(tool for tool in client.list_tools() if tool["name"] == "order_refund")
        return tool["inputSchema"]["properties"]["values"]["properties"]["reason"]["description"]

    with translation.override("de"):
        german = read()

    assert (german, read()) == ("Passwort", "Password")


def test_a_limited_token_reaches_views_of_its_models_alone(make_client):
    mcp.register_view(echo_path, route="echo/<slug:word>/", name="echo-path")
    names = codenames("add", "change", "delete")
    limited = make_client(*names, models=["shop.order"])
    other = make_client(*names, models=["shop.customer"])

    assert listed(limited) == READS | WRITES
    assert listed(other) == set()
    assert "echo_path" not in {tool["name"] for tool in limited.list_tools()}


def test_what_retrieve_answers_is_a_resource_whose_record_tells_of_changes(
    make_client, orders, django_capture_on_commit_callbacks
):
    client = make_client("view_order")
    uris = [f"django://rest/order/{order.pk}" for order in orders]
    templates = client.request("resources/templates/list")["resourceTemplates"]

    assert "django://rest/order/{pk}" in {each["uriTemplate"] for each in templates}
    assert client.read_resource(uris[0])["number"] == "a"
    with pytest.raises(ProtocolFailure, match="Resource not found"):
        client.read_resource(uris[3])
    with client.listen(uris[0]) as changes:
        with django_capture_on_commit_callbacks(execute=True):
            orders[0].save()
        assert next(changes) == uris[0]


@pytest.mark.parametrize(("codename", "is_told"), [("view_order", True), ("add_order", False)])
def test_only_who_may_view_the_record_hears_of_a_resource_of_the_api(
    make_user, orders, codename, is_told
):
    rights = rights_of(make_user("x", codename, is_staff=True))

    verdicts = admit_all(rights, [f"django://rest/order/{orders[0].pk}"])

    assert list(verdicts.values()) == [Verdict.VISIBLE if is_told else Verdict.SILENT]
