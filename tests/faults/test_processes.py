"""What a site that runs does when something that it needs is taken away, and given back.

Each test ends with everybody writing, hearing of it and reading it, compared with the database.
docs/howto/faults.md has a row for each.
"""

from __future__ import annotations

import json
import os
import resource
import signal
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import msgspec
import pytest

from mcp_django.protocol.errors import INTERNAL_ERROR
from mcp_django.testing import ProtocolFailure
from tests.faults.processes import (
    MariaDB,
    PostgreSQL,
    Site,
    check_all_is_well,
    refusal,
    sqlite,
)
from tests.served import SocketClient
from tests.transports.live_servers import Answer
from tests.transports.test_layer import PUBSUB, Redis
from tests.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.thorough, pytest.mark.live, pytest.mark.needs("daphne")]


@pytest.fixture(autouse=True)
def reads_the_database_of_the_site(django_db_blocker):
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def redis(tmp_path):
    server = Redis(tmp_path)
    yield server
    server.process.send_signal(signal.SIGCONT)
    server.kill()


@pytest.fixture
def over_redis(redis, tmp_path):
    """A site whose layer and sessions are in that Redis."""
    environ = {"LIVE_LAYER": PUBSUB, "LIVE_PREFIX": "own", "MCP_TEST_REDIS_PORT": str(redis.port)}
    with Site(sqlite(tmp_path), cache="redis", **environ) as site:
        yield site


@pytest.fixture
def site(tmp_path):
    """One whose sessions are in its database."""
    with Site(sqlite(tmp_path)) as site:
        yield site


def sessions_of(people):
    return [person.session.client.session for person in people]


def check_calls_without_redis(servers, people):
    """Who has no session notices nothing. Who has one is refused, and waits for nobody."""
    for person in people:
        person.write()
        assert person.subscriptions[0].read() == person.text
        assert refusal(person.session.try_to_read) == 503
    assert [server.health for server in servers] == [200, 200]
    servers[0].logs("Other processes cannot be told of changes: ")
    servers[1].logs("Changes of other processes are not heard: ")


@pytest.mark.needs("redis", "channels_redis")
def test_redis_is_killed_and_comes_back_empty(over_redis, redis):
    servers = over_redis.serve(), over_redis.serve()
    people = over_redis.people(*servers)
    check_all_is_well(over_redis, people)
    before = sessions_of(people)

    redis.kill()
    check_calls_without_redis(servers, people)
    redis.start()

    check_all_is_well(over_redis, people)
    servers[0].logs("Other processes are told of changes again.")
    servers[1].logs("Changes of other processes are heard again.")
    assert not set(before) & set(sessions_of(people))


@pytest.mark.needs("redis", "channels_redis")
def test_redis_hangs_and_goes_on(over_redis, redis):
    servers = over_redis.serve(), over_redis.serve()
    people = over_redis.people(*servers)
    check_all_is_well(over_redis, people)
    before = sessions_of(people)

    redis.process.send_signal(signal.SIGSTOP)
    check_calls_without_redis(servers, people)
    redis.process.send_signal(signal.SIGCONT)

    check_all_is_well(over_redis, people)
    assert sessions_of(people) == before


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(PostgreSQL, marks=pytest.mark.needs("initdb", "setpriv")),
        pytest.param(MariaDB, marks=pytest.mark.needs("mariadbd", "setpriv")),
    ],
)
def test_a_database_crashes_and_is_started_again(kind):
    with kind() as database, Site(database.database) as site:
        server = site.serve()
        people = site.people(server, server)
        check_all_is_well(site, people)
        before = sessions_of(people)

        database.kill()
        for person in people:
            assert refusal(person.write)
            for subscription in person.subscriptions:
                assert refusal(subscription.try_to_read)
        assert server.health == 503
        server.logs("This process cannot answer calls: ")
        database.start()
        check_all_is_well(site, people)
        # Its answer is good for a second.
        wait_until(lambda: server.health == 200)

        # Nobody calls meanwhile, and connections look as if they were open.
        database.kill()
        database.start()
        check_all_is_well(site, people)
        assert sessions_of(people) == before


def hold(person, file):
    """A call that goes on until there is a file: its response, and the first event."""
    client = person.session.client
    params = {"name": "hold", "arguments": {"file": str(file)}, "_meta": {"progressToken": "t"}}
    message = client.message("tools/call", params)
    headers = {**client.routing_headers(message), "Authorization": f"Bearer {person.token}"}
    answer = Answer(client.port, "POST", message, **headers)
    while not (event := answer.event()).message:
        continue
    return answer, event, message["id"]


@pytest.mark.needs("redis", "channels_redis")
def test_workers_are_killed_in_a_call_and_with_open_streams(over_redis, tmp_path):
    server = over_redis.serve("--workers=2")
    people = over_redis.people(server, server)
    check_all_is_well(over_redis, people)
    ada, _ = people
    answer, event, number = hold(ada, tmp_path / "never")
    caller = int(event.message["params"]["message"])
    main = server.process.pid
    workers = {int(pid) for pid in Path(f"/proc/{main}/task/{main}/children").read_text().split()}
    assert caller in workers

    for ended, pid in enumerate(workers, 1):
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda ended=ended: server.log.count("A worker ended with status -9.") == ended)

    with suppress(OSError, HTTPException):
        assert answer.message() is None
    answer.close()
    check_all_is_well(over_redis, people)
    session = ada.session.client
    own = {"MCP-Protocol-Version": session.revision.value, **session.session_headers()}
    own["Authorization"] = f"Bearer {ada.token}"
    resumed = Answer(session.port, "GET", **own, Last_Event_ID=event.id)
    final = resumed.message()
    resumed.close()
    assert (final["id"], final["error"]["code"]) == (number, INTERNAL_ERROR)


CLIENTS = 500


def test_five_hundred_clients_connect_at_once(site):
    server = site.serve()
    people = site.people(server, server)
    waiting = []

    server.process.send_signal(signal.SIGSTOP)
    for number in range(CLIENTS):
        person = people[number % 2]
        client = SocketClient(server.port, token=person.token)
        message = client.message("resources/read", {"uri": person.uri})
        message["id"] = number
        pairs = client.scope("POST", headers=client.routing_headers(message))["headers"]
        connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        headers = {name.decode(): value.decode() for name, value in pairs}
        connection.request("POST", "/mcp", msgspec.json.encode(message), headers)
        waiting.append((connection, person))
    server.process.send_signal(signal.SIGCONT)

    statuses = []
    for number, (connection, person) in enumerate(waiting):
        response = connection.getresponse()
        answer = msgspec.json.decode(response.read())
        connection.close()
        statuses.append(response.status)
        assert answer["id"] == number
        if response.status == 503:
            assert response.headers["Retry-After"]
        else:
            [contents] = answer["result"]["contents"]
            assert contents["uri"] == person.uri
            assert person.text in contents["text"]
    assert set(statuses) <= {200, 503}
    assert 200 in statuses
    assert "Traceback" not in server.log
    check_all_is_well(site, people)


def test_calls_that_do_not_end_fill_the_threads_of_tools(site, tmp_path):
    server = site.serve(FAULTS_SETTINGS=json.dumps({"TOOL_TIMEOUT": 0.5}))
    people = site.people(server, server)
    file = tmp_path / "file"
    # A user has half of the threads at most, so it takes two of them.
    for person in (people[0], *people):
        answer, _, _ = hold(person, file)
        *_, final = iter(answer.message, None)
        answer.close()
        assert final["result"]["isError"]

    for person in people:
        assert refusal(person.write) == 503
        for subscription in person.subscriptions:
            assert subscription.read() == person.text
    assert server.health == 200

    file.touch()
    check_all_is_well(site, people)


def test_the_disk_of_sqlite_is_full(site):
    server = site.serve()
    people = site.people(server, server)
    check_all_is_well(site, people)
    before = sessions_of(people)
    pid, (usual, most) = server.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, most))
    for person in people:
        assert refusal(person.write)
        for subscription in person.subscriptions:
            assert subscription.read() == person.text
        with pytest.raises(ProtocolFailure) as refused:
            person.session.make_client()
        assert refused.value.status == 503
    assert server.health == 200
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (usual, most))

    check_all_is_well(site, people)
    assert sessions_of(people) == before


def call_again_and_again(person):
    while True:
        person.write()


def test_the_clock_is_set_back(site):
    pytest.importorskip("time_machine")  # not in the group of the gate
    server = site.serve(FAULTS_SETTINGS=json.dumps({"CALLS_PER_MINUTE": 60}))
    people = site.people(server, server)
    check_all_is_well(site, people)
    before = sessions_of(people)

    ada, bob = people
    with pytest.raises(ProtocolFailure, match="HTTP 429"):
        call_again_and_again(bob)
    ada.caller.call_tool("set_clock_back", seconds=3600)

    # Bob waits for no minute that has been.
    check_all_is_well(site, people)
    assert sessions_of(people) == before
