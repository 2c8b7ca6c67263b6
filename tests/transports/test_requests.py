from __future__ import annotations

import pytest
from django.contrib import messages
from django.urls import get_script_prefix, reverse

from mcp_django.testing import Client
from mcp_django.transports.requests import build_request


def scope(**changes):
    return {**Client().scope("POST", headers={"X-Name": "value"}), **changes}


def test_a_request_is_djangos_own_with_headers_and_body():
    request = build_request(scope(), b"body")

    assert request.method == "POST"
    assert request.path == request.path_info == "/mcp"
    assert request.headers["X-Name"] == "value"
    assert request.META["REMOTE_ADDR"] == "127.0.0.1"
    assert request.get_host() == "testserver"
    assert request.body == b"body"


@pytest.mark.parametrize("root_path", ["/app", "/app/"])
def test_a_root_path_stands_in_front_of_addresses(root_path):
    request = build_request(scope(path="/app/mcp", root_path=root_path), b"")

    assert request.path_info.lstrip("/") == "mcp"
    assert get_script_prefix() == "/app/"
    assert reverse("admin:index") == "/app/admin/"


def test_a_forced_script_name_counts_more_than_the_servers(settings):
    settings.FORCE_SCRIPT_NAME = "/forced"

    request = build_request(scope(path="/forced/mcp", root_path="/other"), b"")

    assert request.path_info == "/mcp"
    assert get_script_prefix() == "/forced/"


def test_messages_live_as_long_as_the_request():
    request = build_request(scope(), b"")

    messages.warning(request, "careful")

    assert [str(message) for message in messages.get_messages(request)] == ["careful"]
    assert request._messages.update(None) == []
    assert not list(messages.get_messages(build_request(scope(), b"")))
