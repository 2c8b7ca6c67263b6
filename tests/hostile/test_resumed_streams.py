"""Clients that come back for what they may not have any more, too often, or with another token."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group, Permission

import mcp_django as mcp
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PersonalToken,
    PromptTemplate,
)
from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.stores.cache_version import generations
from mcp_django.transports.hub import get_hub
from tests.clients import CheckedClient
from tests.exposure.stored import make_prompt
from tests.shop.models import Memo
from tests.transports.event_stream import turn_the_wheel
from tests.transports.session_client import SessionClient
from tests.transports.wire import speaking

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.django_db(transaction=True),
    pytest.mark.client(revision=LATEST_LEGACY),
]


@pytest.fixture(autouse=True)
def work(add_tool, gate):
    def work(ctx: mcp.Context) -> str:
        """Report a step, and wait."""
        ctx.progress(1)
        gate.wait()
        return "what only they may know"

    add_tool(work)


async def lost(client):
    """A session, and the id of the last event of a call whose stream was lost."""
    session, call, event = await begun(client)
    await call.left()
    return session, event.id


async def begun(client):
    """A session, its call, and the first event of that call which says something."""
    session = await SessionClient.begin(client)
    call = await session.called("work", token="t")
    return session, call, await call.telling()


async def test_resumed_streams_count_as_any_others(client, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "MAX_STREAMS_PER_PRINCIPAL": 2}
    session, last = await lost(client)
    streams = [await session.get(last) for _ in range(2)]

    refused = await session.get(last)

    assert [one.status for one in (*streams, refused)] == [200, 200, 503]
    for stream in streams:
        await stream.left()
    assert not get_hub().streams


async def test_a_resumed_stream_gets_signs_of_life(client):
    session, last = await lost(client)
    stream = await session.get(last)
    opened = await stream.frame()

    turn_the_wheel()

    assert opened.is_comment
    assert (await stream.frame()).is_comment
    await stream.left()


def take_permission(staff):
    staff.user_permissions.remove(
        Permission.objects.get(codename="view_order", content_type__app_label="shop")
    )


def change_token(**fields):
    """Change it behind everybody's back: no signal is sent, as in another process."""
    PersonalToken.objects.update(**fields)
    generations.forget()


def close_stored_prompt(staff):
    template = PromptTemplate.objects.get(name="welcome")
    template.enabled = False
    template.save()


def give_stored_prompt_away(staff):
    template = PromptTemplate.objects.get(name="welcome")
    template.groups.add(Group.objects.create(name="others"))


LOSSES = {
    "a permission": take_permission,
    "the same groups": lambda staff: staff.groups.add(Group.objects.create(name="others")),
    "models of the token": lambda staff: change_token(models=["shop.memo"]),
    "scopes of the token": lambda staff: change_token(scopes=["mcp:read"]),
    "a model": lambda staff: ExposedModel.objects.create(label="shop.order", level=Level.HIDDEN),
    "groups of a model": lambda staff: ExposedModel.objects.create(
        label="shop.order", group_fields=[]
    ),
    "a tool": lambda staff: ExposedTool.objects.create(name="work", enabled=False),
    "a prompt": lambda staff: ExposedPrompt.objects.create(name="shop_greeting", enabled=False),
    "a stored prompt": close_stored_prompt,
    "a stored prompt of all": give_stored_prompt_away,
}


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
async def test_who_has_other_rights_than_the_call_had_finds_nothing_to_resume(
    client, staff, gate, lose
):
    await sync_to_async(make_prompt)("welcome", "Welcome.")
    session, last = await lost(client)
    gate.open()

    await sync_to_async(lose)(staff)
    refused, unknown = await session.get(last), await session.get(f"{'a' * 48}.1")

    assert refused.status == unknown.status == 404
    assert refused.body == unknown.body


@pytest.mark.thorough
async def test_what_code_does_not_declare_any_more_is_not_resumed(client, gate):
    session, last = await lost(client)
    gate.open()
    declared = type(registry.candidates[Memo])

    registry.unregister(Memo)
    registry.register(Memo, type("Narrower", (declared,), {"fields": ["id"]}))
    try:
        refused = await session.get(last)
    finally:
        registry.unregister(Memo)
        registry.register(Memo, declared)

    assert refused.status == 404
    assert (await session.get(last)).status == 200


def revoke(staff):
    PersonalToken.objects.get().delete()


@pytest.mark.parametrize(
    ("lose", "is_answered"), [(revoke, True), (revoke, False), (take_permission, True)]
)
async def test_a_right_that_is_lost_ends_a_stream_that_was_resumed_before(
    client, staff, gate, lose, is_answered
):
    session, last = await lost(client)
    stream = await session.get(last)
    await sync_to_async(lose)(staff)

    if is_answered:
        gate.open()
    else:
        turn_the_wheel()

    assert await stream.rest() == []
    assert not get_hub().streams


async def test_another_token_of_the_same_name_may_not_read_what_a_stronger_one_was_told(
    client, staff, gate
):
    session, last = await lost(client)
    gate.open()
    name = (await PersonalToken.objects.aget()).name
    _, token = await sync_to_async(PersonalToken.create)(
        user=staff, name=name, models=["shop.memo"]
    )
    weak = CheckedClient(token=token)
    thief = SessionClient(speaking(weak, LATEST_LEGACY), session.id)

    assert (await thief.get(last)).status == 404
    assert (await session.get(last)).status == 200


async def test_a_seal_of_another_log_opens_nothing(client, gate):
    session, last = await lost(client)
    _, other = await lost(client)
    mixed = last[:24] + other[24:]

    assert (await session.get(mixed)).status == 404


async def test_what_is_said_after_the_end_of_a_session_has_no_ids(client, gate):
    session, call, event = await begun(client)

    await session.end()
    gate.open()

    answer = await call.event()
    assert answer.message["result"]["content"]
    assert (event.id is None, answer.id) == (False, None)
    await call.end()
