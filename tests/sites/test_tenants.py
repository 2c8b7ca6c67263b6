"""Each call sees the tenant of its user, over every transport, through packages' middleware."""

from __future__ import annotations

import pytest

from mcp_django.asgi import get_mcp_application
from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN
from mcp_django.testing import ProtocolFailure
from mcp_django.transports.middleware import CALLER
from tests.clients import CheckedClient, WSGIClient
from tests.sites.tenancy.models import Delivery

pytestmark = pytest.mark.django_db
TENANT = "tests.sites.tenancy.middleware.TenantMiddleware"
RIGHTS = ("view_delivery", "add_delivery", "change_delivery")
TENANTS = ("north.example", "south.example", "none")
#: By the name of a user: where they belong, and what they see and write there.
USERS = {
    "superuser": ("north.example", {"is_superuser": True, "is_staff": True}, (), True, True),
    "staff": ("south.example", {"is_staff": True}, RIGHTS, True, True),
    "viewer": ("north.example", {"is_staff": True}, RIGHTS[:1], True, False),
    "outsider": ("south.example", {}, (), False, False),
}


@pytest.fixture(autouse=True)
def deliveries():
    for name in TENANTS:
        Delivery.everything.create(tenant=name, name=f"to {name}")


@pytest.fixture(params=["asgi", "asgi below a path", "wsgi"])
def connect(request, settings):
    """Clients of one transport each. A server of ASGI has the endpoint, and no URLconf."""
    if request.param == "wsgi":
        return WSGIClient
    settings.ROOT_URLCONF = "tests.sites.tenancy.urls"
    prefix = "/office" if request.param.endswith("path") else ""
    settings.FORCE_SCRIPT_NAME = prefix or None
    application = get_mcp_application()
    return lambda **options: CheckedClient(
        application=application, path=f"{prefix}/mcp", **options
    )


@pytest.fixture(params=[LATEST_LEGACY, MODERN[-1]], ids=str)
def log_in(request, connect, make_user):
    """The client of a user by name, in the last revision of each era."""

    def make(name):
        tenant, attributes, rights, *_ = USERS[name]
        user = make_user(name, *rights, email=f"{name}@{tenant}", **attributes)
        client = connect(user=user, revision=request.param)
        if request.param is LATEST_LEGACY:
            client.initialize()
        return client

    return make


@pytest.mark.parametrize("name", USERS)
def test_a_user_sees_and_writes_the_rows_of_one_tenant(log_in, name):
    tenant, _, _, sees, writes = USERS[name]
    client = log_in(name)

    who = client.call_tool("current_user")
    found = client.call_tool("find_records", model="tenancy.delivery")
    is_made = create(client)

    assert who.text == name
    assert found.is_error is not sees
    if sees:
        assert [row["name"] for row in found.records] == [f"to {tenant}"]
    assert is_made is writes
    tenants = Delivery.everything.filter(name="new").values_list("tenant", flat=True)
    assert list(tenants) == ([tenant] if writes else [])


def create(client):
    """Whether the user may, and did."""
    values = {"name": "new"}
    if "create_record" not in client.tools():
        return False
    return not client.call_tool("create_record", model="tenancy.delivery", values=values).is_error


def test_a_call_ends_with_its_tenant_and_its_user(log_in):
    north, south = log_in("viewer"), log_in("staff")

    for client, tenant in [(north, "north.example"), (south, "south.example")] * 2:
        found = client.call_tool("find_records", model="tenancy.delivery")
        assert [row["name"] for row in found.records] == [f"to {tenant}"]


def test_over_wsgi_no_row_of_any_tenant_is_shown_while_ours_is_missing(settings, make_user):
    settings.MIDDLEWARE = [path for path in settings.MIDDLEWARE if path != CALLER]
    user = make_user("boss", is_superuser=True, is_staff=True, email="boss@north.example")
    client = WSGIClient(user=user)

    for tool, arguments in [("find_records", {}), ("create_record", {"values": {"name": "new"}})]:
        with pytest.raises(ProtocolFailure, match="not set up"):
            client.call_tool(tool, model="tenancy.delivery", **arguments)

    assert Delivery.everything.count() == len(TENANTS)


@pytest.mark.needs("django_prometheus")
def test_calls_are_measured_under_the_name_of_the_endpoint(log_in):
    from prometheus_client import REGISTRY

    labels = {"view": "mcp_django:endpoint", "transport": "http", "method": "POST"}
    sample = "django_http_requests_total_by_view_transport_method_total"
    client = log_in("viewer")
    before = REGISTRY.get_sample_value(sample, labels) or 0

    client.call_tool("current_user")

    assert REGISTRY.get_sample_value(sample, labels) == before + 1
