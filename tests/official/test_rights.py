"""What somebody may not see does not exist: the same answers as for what never was."""

from __future__ import annotations

import asyncio

import pytest
from mcp import MCPError

from tests.official.desk import Assistant

OF_PEOPLE = ["flights.passenger", "flights.booking", "flights.incident"]
OF_NOBODY = [
    "admin.logentry",
    "auth.group",
    "auth.permission",
    "auth.user",
    "contenttypes.contenttype",
    "flights.profile",
    "mcp_django.personaltoken",
    "sessions.session",
]
NEVER = "flights.zeppelin"


async def answers_about(assistant: Assistant, model: str) -> list[str]:
    """What every way to ask about a model answers, without the name of the model."""
    answers = [
        await assistant.refusal("describe_model", model=model),
        await assistant.refusal("find_records", model=model),
        await assistant.refusal("find_records", model=model, filters={"id": 1}, limit=1),
        await assistant.refusal("get_record", model=model, pk=1),
    ]
    paths = [
        f"models/{model}",
        f"objects/{model}",
        f"objects/{model}/1",
        f"files/{model}/1/report",
    ]
    for path in paths:
        uri = f"django://{path}"
        answers.append(await assistant.refusal("read_resource", uri=uri))
        with pytest.raises(MCPError) as caught:
            await assistant.client.read_resource(uri)
        answers.append(f"{caught.value.code} {caught.value.message} {caught.value.error.data}")
    return [answer.replace(model, "MODEL") for answer in answers]


def hidden_from(user: str) -> list[str]:
    hidden = {"analyst": OF_PEOPLE, "manager": OF_PEOPLE[:2]}.get(user, [])
    return [*hidden, *OF_NOBODY]


@pytest.mark.asyncio
async def test_a_hidden_model_answers_like_one_that_never_existed(desk, user, era):
    async with desk.connect(user, era) as assistant:
        of_nothing = await answers_about(assistant, NEVER)

        for model in hidden_from(user):
            assert await answers_about(assistant, model) == of_nothing


@pytest.mark.asyncio
async def test_every_permission_is_worth_nothing_to_somebody_who_is_not_staff(desk, era):
    async with desk.connect("outsider", era) as assistant:
        resources = (await assistant.client.list_resources()).resources
        of_nothing = await answers_about(assistant, NEVER)

        assert await assistant.models() == {}
        assert [str(one.uri) for one in resources] == ["django://site"]
        templates = (await assistant.client.list_resource_templates()).resource_templates
        assert [one.name for one in templates] == ["timetable"]
        with pytest.raises(MCPError, match="Resource not found"):
            await assistant.read("flightdesk://timetable/2026-11-02")
        for model in ("flights.airport", "flights.flight", *OF_PEOPLE, "auth.user"):
            assert await answers_about(assistant, model) == of_nothing


@pytest.mark.asyncio
async def test_with_a_read_only_token_no_tool_that_writes_exists(desk, era):
    flight = {"flight": "RF100", "day": "2026-11-19", "minutes": 30}

    async with desk.connect("read-only admin", era) as assistant:
        tools = (await assistant.client.list_tools()).tools
        with pytest.raises(MCPError) as caught:
            await assistant.client.call_tool("report_delay", flight)
        with pytest.raises(MCPError) as unknown:
            await assistant.client.call_tool("report_zeppelin", flight)

    assert all(tool.annotations.read_only_hint for tool in tools)
    assert caught.value.code == unknown.value.code == -32602
    assert caught.value.message.replace("delay", "zeppelin") == unknown.value.message


@pytest.mark.asyncio
async def test_a_token_that_was_revoked_ends_an_open_connection(desk, era):
    desk.make_token("short-lived", "analyst", "--scope", "mcp:read")

    async with desk.connect("short-lived", era) as assistant:
        assert await assistant.models()
        desk.ask("run", "mcp_token", "revoke", str(desk.token_ids["short-lived"]))
        with pytest.raises(MCPError) as caught:
            await until_it_fails(assistant)

    assert "credential" in caught.value.message


async def until_it_fails(assistant: Assistant) -> None:
    """Who a token belongs to may be remembered for a second."""
    async with asyncio.timeout(60):
        while True:
            await assistant.models()
            await asyncio.sleep(0.05)
