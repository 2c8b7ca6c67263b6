"""Two tenants of django-tenants on one server, whose users, tokens and rows have the same keys."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from django_tenants.utils import schema_context

from mcp_django.levels import Level
from mcp_django.models import CallRecord, ExposedModel, PersonalToken
from mcp_django.principal import SCOPES
from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN
from mcp_django.testing import ProtocolFailure
from tests.served import SocketClient, served
from tests.shop.models import Customer, Memo
from tests.sites.estates.models import make_tenant
from tests.transports.live_servers import Answer, Reader

pytestmark = [pytest.mark.needs("django_tenants"), pytest.mark.django_db]
NORTH, SOUTH = TENANTS = ("north", "south")
USERS = {"boss": 1, "clerk": 2}


@pytest.fixture(scope="module")
def tokens(django_db_setup, django_db_blocker):
    """By tenant and user. Staff of the north have hidden the memos."""
    secrets = {}
    with django_db_blocker.unblock():
        for tenant in TENANTS:
            make_tenant(tenant)
            with schema_context(tenant):
                ExposedModel.objects.filter(label="shop.customer").update(level=Level.WRITE)
                Customer.objects.create(pk=1, name=f"of the {tenant}")
                Customer.objects.create(pk=2, name=f"also of the {tenant}")
                Memo.objects.create(pk=1, text=tenant, code=tenant)
                for name, pk in USERS.items():
                    user = get_user_model().objects.create(
                        pk=pk, username=name, is_staff=True, is_superuser=name == "boss"
                    )
                    codenames = ("view_customer", "view_memo")
                    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
                    _, secret = PersonalToken.create(user=user, name="t", scopes=SCOPES)
                    secrets[tenant, name] = secret
        with schema_context(NORTH):
            ExposedModel.objects.filter(label="shop.memo").update(level=Level.HIDDEN)
        yield secrets
        connection.set_schema_to_public()


@pytest.mark.parametrize("interface", ["asgi", "wsgi"])
def test_of_400_mixed_requests_none_shows_or_writes_anything_of_the_other_tenant(
    tokens, interface
):
    chance, started = random.Random(28), timezone.now()
    cases = [
        (who, who[0] if chance.random() < 0.8 else chance.choice(TENANTS), revision)
        for who in tokens
        for revision in (LATEST_LEGACY, MODERN[-1])
        for _ in range(50)
    ]
    chance.shuffle(cases)
    with served(interface) as port, ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda case: answer_of(port, tokens, *case), cases))

    for ((home, _), host, _), answer in zip(cases, answers, strict=True):
        if host != home:
            assert answer == 401
            continue
        names, later, models = answer
        assert names == [f"of the {home}", f"also of the {home}"]
        assert later == ", ".join(names)
        assert ("shop.memo" in models) is (home == SOUTH)
    at_home = [home for (home, _), host, _ in cases if home == host]
    for tenant in TENANTS:
        with schema_context(tenant):
            records = CallRecord.objects.filter(method="tools/call", at__gte=started)
            assert records.filter(target__startswith="find_records").count() == at_home.count(
                tenant
            )
            assert {record.principal.rsplit("/")[-1] for record in records} == {tenant}
            assert not PersonalToken.objects.filter(last_used_at=None).exists()
    assert not CallRecord.objects.exists()


def answer_of(port, tokens, who, host, revision):
    """The names of customers, twice, and the models; or the status of a refusal."""
    client = SocketClient(port, token=tokens[who], revision=revision, host=f"{host}.localhost")
    try:
        if revision is LATEST_LEGACY:
            client.initialize()
        found = client.call_tool("find_records", model="shop.customer", order_by=["pk"])
        later = client.call_tool("customers_later")
        models = client.call_tool("list_models")
    except ProtocolFailure as refused:
        return refused.status
    return [row["name"] for row in found.records], later.text, models.text


def test_a_stream_is_told_nothing_of_the_same_record_at_the_other_tenant(tokens):
    uris = [f"django://objects/shop.customer/{pk}" for pk in (1, 2)]
    with served("asgi") as port:
        clients = {
            tenant: SocketClient(port, token=tokens[tenant, "boss"], host=f"{tenant}.localhost")
            for tenant in TENANTS
        }
        headers = {
            "Host": f"{SOUTH}.localhost",
            "Authorization": f"Bearer {tokens[SOUTH, 'boss']}",
        }
        with Reader(port, headers=headers, resourceSubscriptions=uris) as stream:
            assert stream.message()["method"].endswith("acknowledged")
            for tenant, pk in ((NORTH, 1), (SOUTH, 2)):
                renamed = clients[tenant].call_tool(
                    "update_record", model="shop.customer", pk=pk, values={"country": "DE"}
                )
                assert not renamed.is_error, renamed.text
            told = stream.message()

    assert told["params"]["uri"] == uris[1]


def test_a_client_of_a_tenant_comes_back_to_a_stream_that_it_lost(tokens):
    # The key of its log has the rights of the reader in it, which are in tables of the tenant.
    with served("asgi") as port:
        client = SocketClient(
            port,
            token=tokens[SOUTH, "boss"],
            revision=LATEST_LEGACY,
            host=f"{SOUTH}.localhost",
        )
        client.initialize()
        headers = {
            "Host": f"{SOUTH}.localhost",
            "Authorization": f"Bearer {tokens[SOUTH, 'boss']}",
            "MCP-Protocol-Version": LATEST_LEGACY.value,
            **client.session_headers(),
        }
        params = {"name": "count_to", "arguments": {"number": 1}, "_meta": {"progressToken": "t"}}
        message = client.message("tools/call", params)
        with closing(Answer(port, "POST", message, **headers)) as lost:
            progress = lost.event()

        with closing(Answer(port, "GET", **headers, Last_Event_ID=progress.id)) as resumed:
            final = resumed.message()

    assert progress.message["method"] == "notifications/progress"
    assert final["result"]["content"][0]["text"] == "Counted to 1."


def test_the_doctor_says_of_which_tenant_the_tokens_are(tokens, capsys):
    # Nothing answers at its address.
    with schema_context(SOUTH), pytest.raises(SystemExit):
        call_command("mcp_doctor")

    out = capsys.readouterr().out
    assert "Tokens and decisions are those of the schema 'south'." in out
    assert "Personal tokens that are valid: 2." in out


def test_the_search_for_leaks_runs_at_each_tenant(tokens, capsys):
    call_command("mcp_leaktest", "clerk", budget=60, tenants="north,south")

    assert capsys.readouterr().out == "Nothing found.\n"
    with pytest.raises(CommandError, match="no tenant whose schema is west"):
        call_command("mcp_leaktest", "clerk", tenants="west")
