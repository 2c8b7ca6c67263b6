"""The record of a call that writes says which records it was about."""

from __future__ import annotations

import json

import pytest

from mcp_django.models import CallRecord

pytestmark = [pytest.mark.django_db, pytest.mark.client(record=True)]


def about(tags, *places):
    return [str(tags[place].pk) for place in places]


@pytest.mark.parametrize(
    ("tool", "arguments", "outcome", "places"),
    [
        ("update_record", {"pk": 0, "values": {"name": "new"}}, "done", [0]),
        ("update_record", {"pk": 1, "values": {"name": ""}}, "failed", [1]),
        ("update_records", {"pks": [0, 2], "values": {"name": "new"}}, "asked", [0, 2]),
        ("delete_record", {"pk": [1]}, "asked", [1]),
        # Of a text nobody knows what it is, and arguments are not kept.
        ("update_record", {"pk": "Ann Smith", "values": {}}, "denied", []),
        ("update_record", {"pk": {"a": 10**400}, "values": {}}, "failed", []),
    ],
    ids=range(6),
)
def test_it_has_the_model_and_the_keys(tool, arguments, outcome, places, client, tags):
    def keys(given):
        if isinstance(given, list):
            return [tags[at].pk for at in given]
        return tags[given].pk if isinstance(given, int) else given

    named = {name: keys(value) for name, value in arguments.items() if name in ("pk", "pks")}

    client.call_tool(tool, model="workshop.Tag", **{**arguments, **named})

    record = CallRecord.objects.get()
    assert record.model == "workshop.tag"
    assert json.loads(record.keys or "[]") == about(tags, *places)
    assert record.outcome == outcome


def test_of_new_records_it_has_the_keys_that_they_got(client, tags):
    made = client.data("create_record", model="workshop.tag", values={"name": "new"})
    client.data("create_record", model="workshop.tag", values={"name": "tried"}, dry_run=True)
    client.data("find_records", model="workshop.tag")

    kept = CallRecord.objects.order_by("pk").values_list("model", "keys")
    assert [*kept] == [("workshop.tag", f'["{made["pk"]}"]'), ("workshop.tag", ""), ("", "")]
