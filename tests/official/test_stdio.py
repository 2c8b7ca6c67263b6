"""The official client starts `manage.py mcp_stdio`, as a desktop program does."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager

import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.official.desk import NEWEST, PATIENCE, ROOT, connected
from tests.official.test_questions import SEAT, Person

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def started(desk, era, *arguments, variables=(), **options):
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["manage.py", "mcp_stdio", *arguments],
        env=desk.environment(**dict(variables)),
        cwd=ROOT,
    )
    with (desk.state / "stdio.log").open("a") as errors:
        streams = stdio_client(parameters, errlog=errors)
        async with connected(streams, era, **options) as assistant:
            yield assistant


@pytest.mark.parametrize("kind", ["name", "token"])
async def test_it_speaks_the_newest_revision_of_its_era_as_a_user_or_a_token(
    desk, era, kind, monkeypatch
):
    # A process that starts on a busy machine may take longer than people would wait.
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", PATIENCE)
    arguments = ["--user", "manager"] if kind == "name" else []
    variables = {} if kind == "name" else {"MCP_TOKEN": desk.tokens["manager"]}
    async with started(desk, era, *arguments, variables=variables) as assistant:
        spoken = assistant.client.protocol_version
        over_stdio = await assistant.models()

    async with desk.connect("manager", era) as assistant:
        assert over_stdio == await assistant.models()
    assert spoken == NEWEST[era]


async def test_the_person_is_asked(desk, era):
    person = Person(SEAT)

    async with started(
        desk, era, "--user", "traveller", elicitation_callback=person.fill_in
    ) as assistant:
        answer = await assistant.call("choose_seat")

    assert answer["seat"] == "12A"
    assert person.asked[0].message == "Where would you like to sit?"


async def test_calls_are_answered_each_for_itself(desk, era):
    async with started(desk, era, "--user", "admin") as assistant:
        countries = await asyncio.gather(
            *(
                assistant.find("flights.airport", filters={"iata": iata}, fields=["iata"])
                for iata in ("FRA", "JFK", "LHR")
            )
        )

    assert [found[0]["iata"] for found in countries] == ["FRA", "JFK", "LHR"]
