from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import RequestFactory

from mcp_django.auth.throttles import client_address
from mcp_django.models import CallRecord
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient, over_asgi_and_wsgi

pytestmark = [pytest.mark.django_db, pytest.mark.client(record=True)]


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("fe80::1%eth0", "fe80::/64"), ("", ""),
        ("unix:", "unix:"), ("x" * 8000, "x" * 64),
    ],
)  # fmt: skip
def test_addresses_of_one_host_count_as_one(address, counted):
    assert client_address(RequestFactory().get("/", REMOTE_ADDR=address)) == counted


# Those of the site

PLAIN, DRF = "tests.auth.plain_throttles", "tests.auth.drf_classes"


@pytest.fixture(autouse=True)
def empty_cache():
    cache.clear()
    yield
    cache.clear()


def statuses(client, times, method="resources/list"):
    return [client.post_request(method).status for _ in range(times)]


@pytest.mark.needs("drf")
@pytest.mark.parametrize("method", ["resources/list", "tools/list"])
@over_asgi_and_wsgi
def test_a_throttle_of_rest_framework_counts_calls(client, configure, make_user, method):
    configure(THROTTLES=[f"{DRF}.TwoPerUser"])

    assert statuses(client, 4, method) == [200, 200, 429, 429]
    other = type(client)(user=make_user("other", is_staff=True))
    assert statuses(other, 1) == [200]
    assert CallRecord.objects.filter(outcome="limited").count() == 1


@pytest.mark.needs("drf")
@over_asgi_and_wsgi
def test_the_scope_is_mcp_and_the_longest_wait_counts(client, configure):
    configure(THROTTLES=[f"{DRF}.TwoPerUser", f"{DRF}.ThreePerScope"])
    assert statuses(client, 4) == [200, 200, 429, 429]

    answer = client.post_request("resources/list")

    assert answer.status == 429
    assert 3000 < int(answer.headers["retry-after"]) <= 3600


@pytest.mark.needs("drf")
@over_asgi_and_wsgi
def test_a_throttle_sees_the_method_and_the_user(client, configure):
    configure(THROTTLES=[f"{DRF}.OnePerMethod"])

    assert statuses(client, 2) == [200, 429]
    assert statuses(client, 2, "prompts/list") == [200, 429]


@pytest.mark.needs("drf")
def test_each_element_of_a_batch_is_asked_about(staff, configure):
    configure(THROTTLES=[f"{DRF}.TwoPerUser"])
    client = CheckedClient(user=staff, revision="2025-03-26")

    answer = client.post([client.message("resources/list") for _ in range(3)])

    assert answer.status == 429


@over_asgi_and_wsgi
def test_any_class_with_the_two_methods_will_do_and_stops_nobody_while_its_cache_is_away(
    client, configure, caplog
):
    configure(THROTTLES=[f"{PLAIN}.OnlyReading"])

    assert client.list_resources()
    with pytest.raises(ProtocolFailure, match="Try again in 13 seconds") as raised:
        client.call_tool("echo", text="x")
    assert raised.value.status == 429
    # One that does not say how long means a minute.
    configure(THROTTLES=[f"{PLAIN}.Never"])
    assert "Try again in 60 seconds" in client.failure("resources/list")[1]
    configure(THROTTLES=[f"{PLAIN}.Broken"])
    assert client.list_resources()
    assert "Broken cannot count." in caplog.text
