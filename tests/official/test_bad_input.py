"""What a real client can get wrong."""

from __future__ import annotations

import httpx2
import pytest
from mcp import MCPError

FIVE_MEGABYTES = 5 * 1024 * 1024


@pytest.mark.asyncio
async def test_an_unknown_tool_is_an_error_of_the_protocol(desk, user, era):
    async with desk.connect(user, era) as assistant:
        with pytest.raises(MCPError) as caught:
            await assistant.client.call_tool("launch_rocket", {})

        assert (caught.value.code, caught.value.message) == (-32602, "Unknown tool: launch_rocket")
        assert await assistant.models(), "The connection goes on."


@pytest.mark.asyncio
async def test_after_a_body_of_five_megabytes_the_client_goes_on(desk, server):
    async with desk.connect("dispatcher", "modern", server=server) as assistant:
        with pytest.raises(MCPError):
            await assistant.find("flights.flight", search="x" * FIVE_MEGABYTES)

        assert await assistant.models()


@pytest.mark.asyncio
@pytest.mark.parametrize("wrong", ["mcp_" + "a" * 49, "nonsense", "a b"])
async def test_a_wrong_token_does_not_connect(desk, era, wrong):
    desk.tokens["wrong"] = wrong

    with pytest.raises(MCPError) as caught:
        async with desk.connect("wrong", era):
            pass

    assert "redential" in caught.value.message


def post(http: httpx2.Client) -> httpx2.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    return http.post("/mcp", json=message, headers={"MCP-Protocol-Version": "2025-11-25"})


@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_a_good_token_the_status_is_401_and_says_what_to_present(desk, server, token):
    desk.tokens["wrong"] = "mcp_" + "a" * 49

    with desk.http(token, server=server) as http:
        response = post(http)

    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("revision", "verbs", "allowed"),
    [
        ("2026-07-28", ["GET", "DELETE", "PUT", "HEAD"], "POST"),
        ("2025-11-25", ["PUT", "HEAD"], "GET, POST, DELETE"),
    ],
)
def test_other_verbs_are_refused(desk, server, revision, verbs, allowed):
    with desk.http("admin", server=server) as http:
        headers = {"MCP-Protocol-Version": revision}
        responses = [http.request(verb, "/mcp", headers=headers) for verb in verbs]

    assert {response.status_code for response in responses} == {405}
    # Without streams there are no sessions either.
    expected = "POST" if server == "wsgi" else allowed
    assert {response.headers["Allow"] for response in responses} == {expected}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Accept": "text/html"}, 406),
        ({"Origin": "https://evil.example"}, 403),
        ({"MCP-Protocol-Version": "1999-01-01"}, 400),
    ],
)
def test_a_request_that_is_not_for_us_has_a_status_that_says_so(desk, server, headers, status):
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'

    with desk.http("admin", server=server) as http:
        sent = {"Content-Type": "application/json", **headers}
        response = http.post("/mcp", content=body, headers=sent)

    assert response.status_code == status
    assert response.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"[" * 5000]
)
def test_a_body_that_is_no_message_is_refused(desk, server, body):
    with desk.http("admin", server=server) as http:
        response = http.post("/mcp", content=body, headers={"Content-Type": "application/json"})

    assert response.status_code == 400
    assert response.json()["error"]["code"] in (-32700, -32600)
