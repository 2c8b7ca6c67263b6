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
async def test_no_list_names_a_hidden_model(desk, user, era):
    async with desk.connect(user, era) as assistant:
        client = assistant.client
        texts = [
            (await client.list_tools()).model_dump_json(),
            (await client.list_resources()).model_dump_json(),
            (await client.list_resource_templates()).model_dump_json(),
            str(await assistant.call("list_models")),
            str(await assistant.call("list_resources")),
            str(await assistant.read("django://site")),
        ]
        texts += [
            str(await assistant.call("describe_model", model=model))
            for model in await assistant.models()
        ]

    for model in hidden_from(user):
        name = model.partition(".")[2]
        assert not any(name in text.lower() for text in texts if name not in ("user", "group"))
        assert not any(model in text for text in texts)


PATHS_TO_PEOPLE = [
    ("flights.flight", "bookings__passenger__name"),
    ("flights.flight", "bookings__price"),
    ("flights.flight", "bookings"),
    ("flights.flight", "incidents__severity"),
    ("flights.flight", "incidents"),
    ("flights.airport", "incidents__reported_by"),
    ("flights.airport", "departures__bookings__passenger__passport_number"),
    ("flights.country", "profiles__user__password"),
    ("flights.airline", "flights__bookings__price"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("model", "path"), PATHS_TO_PEOPLE)
async def test_no_path_leads_an_analyst_to_people(desk, era, model, path):
    async with desk.connect("analyst", era) as assistant:
        refusals = [
            await assistant.refusal("find_records", model=model, **arguments)
            for arguments in (
                {"filters": {path: 1}},
                {"filters": {f"{path}__isnull": True}},
                {"exclude": {path: 1}},
                {"any_of": [{path: 1}]},
                {"order_by": [f"-{path}"]},
                {"fields": [path]},
            )
        ]

    known = ("bookings", "incidents", "profiles", "passenger", "passport", "reported", "password")
    for text in refusals:
        said = text.replace(path, "")
        assert not any(word in said for word in known), text


SECRETS = {
    "flights.passenger": ["passport_number", "email"],
    "flights.booking": ["passenger__passport_number", "passenger__email"],
    "flights.incident": ["reported_by"],
}


@pytest.mark.asyncio
@pytest.mark.parametrize("model", SECRETS)
@pytest.mark.parametrize("name", ["admin", "dispatcher"])
async def test_columns_that_stay_in_the_admin_can_be_used_for_nothing(desk, era, name, model):
    async with desk.connect(name, era) as assistant:
        for path in SECRETS[model]:
            refusals = [
                await assistant.refusal("find_records", model=model, **arguments)
                for arguments in (
                    {"filters": {path: "C"}},
                    {"filters": {f"{path}__startswith": "C"}},
                    {"filters": {f"{path}__isnull": False}},
                    {"exclude": {f"{path}__startswith": "C"}},
                    {"any_of": [{f"{path}__gt": "C"}]},
                    {"order_by": [path]},
                    {"fields": ["id", path]},
                )
            ]
            refusals.append(
                await assistant.refusal("get_record", model=model, pk=1, fields=[path])
            )
            column = path.rpartition("__")[2]
            assert not any(column in text.replace(path, "") for text in refusals)
            with pytest.raises(MCPError):
                await assistant.client.read_resource(f"django://objects/{model}?{path}=C")
        record = await assistant.call("get_record", model=model, pk=77)
        assert not {"passport_number", "email", "reported_by"} & record.keys()


@pytest.mark.asyncio
async def test_search_does_not_look_into_columns_that_stay_in_the_admin(desk, era):
    secrets = desk.orm.ask("secrets_of_a_passenger")

    async with desk.connect("dispatcher", era) as assistant:
        for secret in secrets.values():
            assert await assistant.find("flights.passenger", search=secret) == []
            assert await assistant.find("flights.booking", search=secret) == []


@pytest.mark.asyncio
@pytest.mark.parametrize("model", ["flights.airport", "flights.flight", "flights.incident"])
async def test_a_manager_finds_what_touches_the_country_and_nothing_else(desk, era, model):
    expected = desk.orm.ask("german")[model]

    async with desk.connect("manager", era) as assistant:
        found = await assistant.find(model, fields=["id"], order_by=["id"])
        counts = await assistant.models()

    assert [record["id"] for record in found] == expected
    assert counts[model] == len(expected)


@pytest.mark.asyncio
async def test_for_a_manager_there_is_one_country(desk, era):
    async with desk.connect("manager", era) as assistant:
        countries = await assistant.find("flights.country")

        assert [country["code"] for country in countries] == ["DE"]


@pytest.mark.asyncio
async def test_what_lies_abroad_answers_a_manager_like_a_key_that_nobody_has(desk, era):
    abroad = desk.orm.ask("abroad")

    async with desk.connect("manager", era) as assistant:
        for model, key in abroad.items():
            answers = []
            for pk in (key, 99_999_999):
                tool = await assistant.refusal("get_record", model=model, pk=pk)
                uri = f"django://objects/{model}/{pk}"
                with pytest.raises(MCPError) as caught:
                    await assistant.client.read_resource(uri)
                error = caught.value.error
                resource = f"{error.code} {error.message} {error.data}".replace(f"/{pk}'", "")
                found = await assistant.find(model, filters={"id": pk})
                answers.append(
                    [tool.replace(f" {pk}.", ""), resource.replace(f"/{pk}'", ""), found]
                )

            assert answers[0] == answers[1]


@pytest.mark.asyncio
async def test_a_manager_finds_nothing_through_an_airport_abroad(desk, era):
    flight = desk.orm.ask("from_abroad")

    async with desk.connect("manager", era) as assistant:
        for filters in (
            {"origin__iata": "CDG"},
            {"origin__city": "Paris"},
            {"origin__city__startswith": "P"},
            {"origin__country__name": "France"},
            {"origin__iata__isnull": False, "origin": flight["origin"]},
        ):
            filters = {"id": flight["pk"], **filters}
            assert await assistant.find("flights.flight", filters=filters) == []
        searched = {"filters": {"id": flight["pk"]}, "search": "Paris"}
        assert await assistant.find("flights.flight", **searched) == []
        excluded = {"filters": {"id": flight["pk"]}, "exclude": {"origin__city": "Paris"}}
        assert len(await assistant.find("flights.flight", **excluded)) == 1


@pytest.mark.asyncio
async def test_search_of_a_manager_does_not_look_into_airports_abroad(desk, era):
    """Incidents abroad are shown where the flight was on its way into the country."""
    code = desk.orm.ask("airport_abroad_with_incidents")

    async with desk.connect("manager", era) as assistant:
        shown = await assistant.find("flights.incident")
        found = await assistant.find("flights.incident", search=code)
    async with desk.connect("dispatcher", era) as assistant:
        there_are = await assistant.find("flights.incident", search=code)

    assert any(record["airport"] for record in shown)
    assert found == []
    assert {record["id"] for record in there_are} & {record["id"] for record in shown}


@pytest.mark.asyncio
async def test_an_airport_abroad_has_no_name_for_a_manager(desk, era):
    flight = desk.orm.ask("from_abroad")

    async with desk.connect("manager", era) as assistant:
        record = await assistant.call("get_record", model="flights.flight", pk=flight["pk"])

    assert record["origin"] == {"pk": flight["origin"], "label": None}
    assert record["destination"]["label"] == flight["destination"]


@pytest.mark.asyncio
async def test_tools_of_the_site_count_for_a_manager_what_touches_the_country(desk, era):
    period = {"since": "2026-11-02", "until": "2026-11-08"}
    expected = desk.orm.ask("left_and_cancelled", *period.values())

    totals = {}
    for name in ("admin", "manager"):
        async with desk.connect(name, era) as assistant:
            report = await assistant.call("on_time_performance", **period)
        airlines = report["airlines"]
        totals[name] = [sum(one[count] for one in airlines) for count in ("flights", "cancelled")]

    assert totals["admin"] == expected["all"]
    assert totals["manager"] == expected["manager"]


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
async def test_tools_of_the_site_have_nothing_for_somebody_who_is_not_staff(desk, era):
    flight = {"flight": "RF100", "day": "2026-11-19", "minutes": 30}
    before = desk.orm.ask("state_of", "RF100", "2026-11-19")
    period = {"since": "2026-11-02", "until": "2026-11-03"}

    async with desk.connect("outsider", era) as assistant:
        report = await assistant.call("on_time_performance", **period)
        schedule = await assistant.call("check_schedule", **period)
        far = await assistant.refusal("distance", origin="FRA", destination="JFK")
        late = await assistant.refusal("report_delay", **flight)

    assert report["airlines"] == []
    assert schedule == {"flights": 0, "conflict_count": 0, "conflicts": []}
    assert far.startswith("There is no airport")
    assert late.startswith("No flight")
    assert desk.orm.ask("state_of", "RF100", "2026-11-19") == before


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
async def test_a_cursor_of_one_user_is_worth_nothing_to_another(desk, era):
    query = {"model": "flights.flight", "limit": 5}

    async with desk.connect("admin", era) as assistant:
        cursor = (await assistant.call("find_records", **query))["next"]
    async with desk.connect("manager", era) as assistant:
        refused = await assistant.refusal("find_records", **query, cursor=cursor)

    told, _ = refused.split(" A valid call: ")
    assert told == "This cursor is not valid for this query. Call again without a cursor."


@pytest.mark.asyncio
async def test_a_token_that_was_revoked_ends_an_open_connection(desk, era):
    desk.make_token("short-lived", "analyst", "--scope", "mcp:read")

    async with desk.connect("short-lived", era) as assistant:
        assert await assistant.models()
        desk.orm.ask("run", "mcp_token", "revoke", str(desk.token_ids["short-lived"]))
        with pytest.raises(MCPError) as caught:
            await until_it_fails(assistant)

    assert "credential" in caught.value.message


async def until_it_fails(assistant: Assistant) -> None:
    """Who a token belongs to may be remembered for a second."""
    async with asyncio.timeout(60):
        while True:
            await assistant.models()
            await asyncio.sleep(0.05)
