"""The table of the README: what works with each revision, over each transport."""

from __future__ import annotations

import json

import pytest
from django.forms import Form

import mcp_django as mcp
from mcp_django.protocol.revisions import Era, Revision
from mcp_django.testing import Client, HTTPAnswer
from tests.docs.pages import ROOT, table
from tests.shop.models import Order

pytestmark = pytest.mark.django_db

HEADING = "## What works today"
ROWS = {row[0]: row[1:] for row in table(ROOT / "README.md", HEADING)}


class WSGIClient(Client):
    """The same client, through Django's own test client and the view."""

    def http(self, verb, body=b"", *, headers=None):
        from django.test import Client as DjangoClient

        sent = {
            "Host": "testserver",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.token}",
            **(headers or {}),
        }
        answer = DjangoClient().generic(
            verb, self.path, body, content_type="application/json", headers=sent
        )
        names = {name.lower(): value for name, value in answer.headers.items()}
        return HTTPAnswer(status=answer.status_code, headers=names, body=answer.content)


CLIENTS = {"Streamable HTTP (ASGI)": Client, "WSGI view": WSGIClient}


@pytest.fixture(params=CLIENTS.items(), ids=lambda item: item[0].split()[0])
def asked(request, revision, staff):
    """A client, and what the table says of it."""
    name, kind = request.param
    head = ["Streamable HTTP (ASGI)", "WSGI view", "HTTP+SSE", "stdio"]
    cell = ROWS[revision.value][head.index(name)]
    return kind(user=staff, revision=revision), cell.split(", ")


def test_the_table_has_every_revision_and_is_honest_about_transports():
    assert list(ROWS) == [revision.value for revision in Revision]
    assert [one for one in Revision if ROWS[one.value][2] != "none"] == [
        one for one in Revision if one.era is Era.LEGACY
    ]


def test_stdio_has_what_each_revision_can_say(revision):
    """That it works is shown in tests/transports/test_stdio.py, for each revision."""
    features = revision.features
    asks = features.elicitation or features.input_required

    assert ROWS[revision.value][3].split(", ") == [
        *("tools", "resources", "prompts", "completion", "progress"),
        *(["batches"] if features.batches else []),
        *(["questions"] if asks else []),
        "subscriptions",
    ]


def test_what_is_announced_is_what_the_table_says(asked):
    client, told = asked

    hello = client.discover() if client.revision.era is Era.MODERN else client.initialize()

    announced = {"tools", "resources", "prompts"}
    if isinstance(client, WSGIClient):
        assert "listChanged" not in hello["capabilities"]["tools"]
    else:
        announced.add("logging")
        assert hello["capabilities"]["resources"] == {"listChanged": True, "subscribe": True}
    if client.revision.features.completions_capability:
        announced.add("completions")
    assert told[:4] == ["tools", "resources", "prompts", "completion"]
    assert set(hello["capabilities"]) - {"experimental"} == announced


def test_tools_and_resources_work_where_the_table_says_so(asked):
    client, told = asked
    Order.objects.create(number="A1", total=5)

    assert told[:2] == ["tools", "resources"]
    assert "find_records" in {one["name"] for one in client.list_tools()}
    found = client.call_tool("find_records", model="shop.order", fields=["number"])
    assert json.loads(found.text)["records"] == [{"number": "A1"}]
    assert client.call_tool("echo_later", text="x").text
    uri = "django://objects/shop.order"
    assert uri in {one["uri"] for one in client.list_resources()}
    assert client.read_resource(uri)["records"][0]["number"] == "A1"


def test_prompts_and_completion_work_where_the_table_says_so(asked):
    client, told = asked
    model = {"type": "ref/resource", "uri": "django://models/{model}"}
    argument = {"name": "model", "value": "shop.ord"}

    completed = client.request("completion/complete", {"ref": model, "argument": argument})

    assert told[2:4] == ["prompts", "completion"]
    assert completed["completion"]["values"] == ["shop.order"]
    assert "prompts" in client.request("prompts/list")


def test_progress_streams_where_the_table_says_so(asked):
    client, told = asked
    params = {"name": "count_to", "arguments": {"number": 3}, "_meta": {"progressToken": "p"}}

    *notifications, final = client.exchange("tools/call", params)

    assert final["result"]["content"][0]["text"] == "Counted to 3."
    assert bool(notifications) == ("progress" in told)


def test_batches_work_where_the_table_says_so(asked):
    client, told = asked
    message = client.message("tools/list")

    answer = client.post([message], headers=client.routing_headers(message))

    is_batch = answer.status == 200 and isinstance(json.loads(answer.body), list)
    assert is_batch == ("batches" in told)


def decide(ctx: mcp.Context) -> str:
    """Have a person decide."""
    ctx.ask("decision", Form, "Well?")
    return "Decided."


def test_questions_are_asked_where_the_table_says_so(asked, add_tool):
    client, told = asked
    client.answers, client.capabilities = {"decision": {}}, {"elicitation": {}}
    add_tool(decide, asks=True)

    answer = client.call_tool("decide")

    assert answer.is_error == ("questions" not in told)
    assert ("decision" in client.questions) == ("questions" in told)
