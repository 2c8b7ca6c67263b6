"""Where django-reversion's middleware holds a transaction round each POST, everything works as
elsewhere: in both eras, for several kinds of users, over ASGI and WSGI.
"""

from __future__ import annotations

import json

import pytest
from django.db import connection
from reversion.models import Version

from mcp_django.models import CallRecord
from mcp_django.protocol.revisions import Era, Revision
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient, WSGIClient
from tests.served import SocketClient, served
from tests.sites.parcels.models import Versioned

MODEL = "parcels.versioned"


@pytest.fixture
def people(make_user):
    rights = ["view_versioned", "add_versioned", "change_versioned"]
    return {
        "boss": make_user("boss", is_staff=True, is_superuser=True),
        "clerk": make_user("clerk", *rights, is_staff=True),
        "reader": make_user("reader", "view_versioned", is_staff=True),
        "outsider": make_user("outsider"),
    }


def in_threads(**options):
    return CheckedClient(inline=False, **options)


ERAS = [Revision.V2025_06_18, list(Revision)[-1]]
COMMITS = pytest.mark.django_db(transaction=True)


@pytest.fixture(
    params=[
        *(pytest.param((CheckedClient, one), marks=pytest.mark.django_db) for one in Revision),
        *(pytest.param((WSGIClient, one), marks=pytest.mark.django_db) for one in ERAS),
        *(pytest.param((in_threads, one), marks=COMMITS) for one in ERAS),
    ],
    ids=lambda param: f"{param[0].__name__} {param[1].value}",
)
def connect(request, people):
    """A client of a person, in a session where there are any."""
    make_client, revision = request.param

    def make(name):
        client = make_client(user=people[name], revision=revision)
        if revision.era is Era.LEGACY:
            client.initialize()
            assert bool(client.session) is (make_client is not WSGIClient)
        return client

    return make


def call(client, tool, **arguments):
    """What a tool answers with, in any revision."""
    answer = client.call_tool(tool, model=MODEL, **arguments)
    assert not answer.is_error, answer.text
    return json.loads(answer.text)


def test_whoever_may_write_writes_one_version(connect, people):
    client = connect("clerk")

    pk = call(client, "create_record", values={"name": "a"})["pk"]
    call(client, "update_record", pk=pk, values={"size": 5})

    versions = Version.objects.get_for_object(Versioned.objects.get(pk=pk))
    assert {one.revision.user for one in versions} == {people["clerk"]}
    assert sorted(one.field_dict["size"] for one in versions) == [0, 5]


def test_a_superuser_deletes_what_was_confirmed(connect):
    client, one = connect("boss"), Versioned.objects.create(name="a")
    token = call(client, "delete_record", pk=one.pk)["confirmation"]

    call(client, "delete_record", pk=one.pk, confirmation=token)

    assert not Versioned.objects.exists()


def test_an_action_changes_what_it_is_for(connect):
    client, one = connect("clerk"), Versioned.objects.create(name="a")

    answer = client.call_tool("parcels_versioned_grow", pks=[one.pk])

    assert "Grew 1." in answer.text
    assert Versioned.objects.get().size == 1


def test_who_may_not_write_or_only_tries_leaves_no_version(connect):
    row = Versioned.objects.create(name="a")
    reader, outsider, clerk = (connect(name) for name in ("reader", "outsider", "clerk"))

    record = call(reader, "get_record", pk=row.pk)
    refused = reader.call_tool("update_record", model=MODEL, pk=row.pk, values={"size": 5})
    unknown = outsider.call_tool("find_records", model=MODEL)
    call(clerk, "create_record", values={"name": "b"}, dry_run=True)

    assert record["name"] == "a"
    assert refused.is_error
    assert unknown.is_error
    assert Versioned.objects.values_list("name", "size").get() == ("a", 0)
    assert not Version.objects.exists()


def test_a_session_that_has_ended_is_gone(connect):
    client = connect("reader")
    if client.session is None:
        pytest.skip("There are no sessions.")
    used = client.session
    client.end_session()
    client.session = used

    with pytest.raises(ProtocolFailure, match="Session not found"):
        client.list_tools()


# A server of its own, which writes the records of calls while it answers others


@pytest.mark.skipif(connection.vendor != "sqlite", reason="Other databases have many writers.")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("interface", ["asgi", "wsgi"])
@pytest.mark.parametrize("revision", ERAS, ids=str)
def test_no_write_is_lost_while_records_of_calls_are_written(people, interface, revision):
    with served(interface) as port:
        client = SocketClient(port, user=people["clerk"], revision=revision)
        if revision.era is Era.LEGACY:
            client.initialize()
        answers = [
            client.call_tool("create_record", model=MODEL, values={"name": f"{number}"})
            for number in range(100)
        ]

    assert [answer.text for answer in answers if answer.is_error] == []
    assert Versioned.objects.count() == 100
    assert CallRecord.objects.filter(method="tools/call").count() == 100
