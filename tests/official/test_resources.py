from __future__ import annotations

import pytest
from mcp import MCPError


@pytest.mark.asyncio
async def test_definitions_collections_and_records_are_what_the_tools_answer(desk, user, era):
    async with desk.connect(user, era) as assistant:
        for model in await assistant.models():
            definition = await assistant.read(f"django://models/{model}")
            described = await assistant.call("describe_model", model=model)
            assert definition == without(described, "writing")
            collection = await assistant.read(f"django://objects/{model}")
            page = await assistant.call("find_records", model=model)
            assert collection["records"] == page["records"]
            # Cursors tell when they were made.
            assert ("next" in collection) is ("next" in page)
            pk = collection["records"][0]["id"]
            record = await assistant.read(f"django://objects/{model}/{pk}")
            found = await assistant.call("get_record", model=model, pk=pk)
            assert record == without(without(found, "_version"), "admin_url")


def without(answer, name):
    """An answer of a tool but for what only those need who write, which they do with tools."""
    return {key: value for key, value in answer.items() if key != name}


@pytest.mark.asyncio
async def test_every_listed_resource_can_be_read(desk, user, era):
    async with desk.connect(user, era) as assistant:
        for one in (await assistant.client.list_resources()).resources:
            assert await assistant.read(str(one.uri))


@pytest.mark.asyncio
async def test_a_record_links_to_its_file_and_the_link_is_read(desk, era):
    call = {"model": "flights.incident", "pk": 7}

    async with desk.connect("admin", era) as assistant:
        _, link = (await assistant.client.call_tool("get_record", call)).content
        (contents,) = (await assistant.client.read_resource(str(link.uri))).contents

    assert str(link.uri) == "django://files/flights.incident/7/report"
    assert link.size == len(contents.text.encode())
    assert link.mime_type == contents.mime_type == "text/plain"


@pytest.mark.asyncio
async def test_the_timetable_of_a_day_is_completed_and_read(desk, era):
    template = "flightdesk://timetable/{day}"

    async with desk.connect("analyst", era) as assistant:
        listed = (await assistant.client.list_resource_templates()).resource_templates
        (contents,) = (
            await assistant.client.read_resource(template.format(day="2026-11-02"))
        ).contents

    assert template in {one.uri_template for one in listed}
    assert contents.mime_type == "text/csv"
    assert contents.text.startswith("flight,from,to")


@pytest.mark.asyncio
async def test_a_manager_reads_files_of_incidents_in_the_country_only(desk, era):
    german, abroad = desk.ask("incidents")

    async with desk.connect("manager", era) as assistant:
        read = assistant.client.read_resource
        assert (await read(f"django://files/flights.incident/{german}/report")).contents
        for path in (
            f"flights.incident/{abroad}/report",
            f"flights.incident/{german}/reported_by",
        ):
            with pytest.raises(MCPError) as caught:
                await read(f"django://files/{path}")
            assert caught.value.message == "Resource not found."


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "uri",
    [
        "django://models",
        "django://models/flights.flight/1",
        "django://objects/flights.flight/none",
        "django://objects/flights.flight/1/2",
        "django://files/flights.flight/1/number",
        "django://files/flights.incident/1/../../db.sqlite3",
        "django://users/1",
        "file:///etc/passwd",
        "https://flights.example/",
    ],
)
async def test_a_uri_of_nothing_is_not_found(desk, era, uri):
    async with desk.connect("admin", era) as assistant:
        with pytest.raises(MCPError) as caught:
            await assistant.client.read_resource(uri)

    assert caught.value.message == "Resource not found."
    assert caught.value.code == (-32602 if era == "modern" else -32002)
