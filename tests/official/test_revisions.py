"""Bare HTTP: every revision on one URL, and each message as its schema wants it."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from mcp_django.protocol.revisions import Era, Revision
from tests.oracle import assert_valid_message

META = "io.modelcontextprotocol/"
ids = itertools.count(1)
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "django://site"}),
    ("resources/read", {"uri": "django://files/flights.incident/3/report"}),
    ("resources/read", {"uri": "django://objects/flights.zeppelin"}),
    ("tools/call", {"name": "list_models", "arguments": {}}),
    ("tools/call", {"name": "distance", "arguments": {"origin": "FRA", "destination": "JFK"}}),
    ("tools/call", {"name": "distance", "arguments": {"origin": "FRA"}}),
    ("tools/call", {"name": "no_such_tool"}),
    ("tools/call", {}),
    ("no/such/method", {}),
]


def message(revision: Revision, method: str, params: dict[str, Any]) -> dict[str, Any]:
    if revision.era is Era.MODERN:
        envelope = {
            f"{META}protocolVersion": revision.value,
            f"{META}clientCapabilities": {},
            f"{META}clientInfo": {"name": "bare", "version": "1"},
        }
        params = {**params, "_meta": {**envelope, **params.get("_meta", {})}}
    return {"jsonrpc": "2.0", "id": next(ids), "method": method, "params": params}


def headers_of(revision: Revision, sent: dict[str, Any]) -> dict[str, str]:
    headers = {"MCP-Protocol-Version": revision.value}
    if revision.era is Era.MODERN:
        headers["Mcp-Method"] = sent["method"]
        name = sent["params"].get("name") or sent["params"].get("uri")
        if name:
            headers["Mcp-Name"] = name
    return headers


def messages_in(response: Any) -> list[dict[str, Any]]:
    if response.headers["Content-Type"].startswith("text/event-stream"):
        lines = response.text.splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return [response.json()]


def ask(http: Any, revision: Revision, method: str, params: dict[str, Any]) -> list[Any]:
    """All messages of the answer, each held against the schema of the revision."""
    sent = message(revision, method, params)
    response = http.post("/mcp", json=sent, headers=headers_of(revision, sent))
    messages = messages_in(response)
    for one in messages:
        assert_valid_message(revision, one.get("method", method), one)
    assert messages[-1]["id"] == sent["id"]
    return messages


def test_each_revision_is_greeted_in_its_own_words(desk, revision):
    hello: dict[str, Any] = {
        "protocolVersion": revision.value,
        "capabilities": {},
        "clientInfo": {"name": "bare", "version": "1"},
    }

    with desk.http("dispatcher") as http:
        if revision.era is Era.MODERN:
            (answer,) = ask(http, revision, "server/discover", {})
            assert revision.value in answer["result"]["supportedVersions"]
            assert answer["result"]["_meta"][f"{META}serverInfo"]["name"] == "Flight desk"
        else:
            sent = message(revision, "initialize", hello)
            answer = http.post("/mcp", json=sent).json()
            # Nobody knows the revision yet, so the answer is in the words of the one it names.
            assert_valid_message(revision, "initialize", answer)
            assert answer["result"]["protocolVersion"] == revision.value
            assert answer["result"]["serverInfo"]["name"] == "Flight desk"
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            accepted = http.post("/mcp", json=note, headers=headers_of(revision, sent))
            assert (accepted.status_code, accepted.content) == (202, b"")


@pytest.mark.parametrize(("method", "params"), ASKED)
def test_each_message_is_one_of_its_revision(desk, revision, method, params):
    with desk.http("dispatcher") as http:
        (answer,) = ask(http, revision, method, params)

    assert ("result" in answer) != ("error" in answer)


def test_progress_is_told_in_the_words_of_the_revision(desk, revision):
    params = {
        "name": "check_schedule",
        "arguments": {"since": "2026-11-14", "until": "2026-11-21"},
        "_meta": {"progressToken": "p1"},
    }

    with desk.http("dispatcher") as http:
        *notes, answer = ask(http, revision, "tools/call", params)

    assert notes
    assert all(note["method"] == "notifications/progress" for note in notes)
    assert notes[-1]["params"]["progress"] == 8
    assert not answer["result"].get("isError")


def test_a_ping_is_answered_where_there_are_pings(desk, revision):
    with desk.http("dispatcher") as http:
        (answer,) = ask(http, revision, "ping", {})

    assert ("result" in answer) is (revision.era is Era.LEGACY)


def batch() -> list[dict[str, Any]]:
    return [
        {"jsonrpc": "2.0", "id": "one", "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": "two",
            "method": "tools/call",
            "params": {"name": "distance", "arguments": {"origin": "FRA", "destination": "JFK"}},
        },
        {"jsonrpc": "2.0", "id": "three", "method": "no/such/method"},
    ]


def test_a_batch_is_answered_in_the_revision_that_has_batches(desk):
    headers = {"MCP-Protocol-Version": "2025-03-26"}

    with desk.http("dispatcher") as http:
        response = http.post("/mcp", json=batch(), headers=headers)

    answers = {one["id"]: one for one in response.json()}
    assert response.status_code == 200
    assert answers.keys() == {"one", "two", "three"}
    for identifier, method in (("one", "tools/list"), ("two", "tools/call"), ("three", "ping")):
        assert_valid_message(Revision.V2025_03_26, method, answers[identifier])
    assert "6188" in answers["two"]["result"]["content"][0]["text"]
    assert answers["three"]["error"]["code"] == -32601


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_batch_is_refused_in_the_revisions_that_have_none(desk, revision):
    with desk.http("dispatcher") as http:
        response = http.post("/mcp", json=batch(), headers={"MCP-Protocol-Version": revision})

    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32600


def test_all_five_revisions_find_the_same_records_on_one_url(desk):
    arguments = {"model": "flights.airport", "filters": {"country__code": "LU"}}
    found = []

    with desk.http("analyst") as http:
        for revision in Revision:
            params = {"name": "find_records", "arguments": arguments}
            (answer,) = ask(http, revision, "tools/call", params)
            found.append(json.loads(answer["result"]["content"][0]["text"]))

    assert len(found) == 5
    assert found[0]["rows"]
    assert all(one == found[0] for one in found)
