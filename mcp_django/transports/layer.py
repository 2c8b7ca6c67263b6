"""Between the processes of a site: changes as messages on one group of the channel layer.

A message names things and never carries what is in them. One that is lost costs a client a read
too many or too late, never data: whenever something may have been lost, everything is announced.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec
from channels import DEFAULT_CHANNEL_LAYER
from channels.layers import channel_layers
from django.conf import settings
from django.utils.crypto import salted_hmac

from mcp_django.exposure.generation import generations
from mcp_django.subscriptions.events import CLOSE, EVERYTHING, LISTS, Change

logger = logging.getLogger("mcp_django.streams")

#: Of the messages, for Channels' consumers that listen to the group by mistake.
TYPE = "mcp.changes"
#: Changes in one message: some layers take no more than 8 kB.
MOST = 50
#: Seconds that sending may take. The next change must not wait for a layer that hangs.
PATIENCE = 2.0
#: Seconds between two signs that this process wants to hear. Layers forget members that crashed
#: with them.
HEARTBEAT = 10.0
#: Seconds before another attempt to hear from a layer that is gone.
PAUSE = 1.0


class Process:
    """Tells our own messages from those of others."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.name = secrets.token_urlsafe(8)


process = Process()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=process.forget)


def links_processes() -> bool:
    """Whether the site has a channel layer that reaches beyond this process."""
    configured = getattr(settings, "CHANNEL_LAYERS", {}).get(DEFAULT_CHANNEL_LAYER, {})
    backend = configured.get("BACKEND", "")
    return bool(backend) and not backend.endswith(".InMemoryChannelLayer")


def group() -> str:
    """The group of the site. Another site, or another app, on the same layer does not know it."""
    return f"mcp_django.{salted_hmac(TYPE, 'group', algorithm='sha256').hexdigest()[:32]}"


def get_layer() -> Any:
    # `get_channel_layer` answers None for any KeyError inside of a backend.
    return channel_layers[DEFAULT_CHANNEL_LAYER]


class Publisher:
    """The sink of the outbox that tells other processes. Lives in the outbox's thread, with a
    loop of its own: a connection serves for all messages.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._has_lost = False
        #: Batches that could not be sent, since this process started.
        self.lost = 0

    def __call__(self, changes: frozenset[Change]) -> None:
        """Send them. What cannot be sent is counted, and made up for by the next batch."""
        batch = {EVERYTHING, *changes} if self._has_lost else changes
        try:
            self._runner.run(self._send(batch))
        except Exception as error:
            self.lost += 1
            if not self._has_lost:
                logger.error("Other processes cannot be told of changes: %s", error)
            self._has_lost = True
        else:
            self._has_lost = False

    def close(self) -> None:
        """Give the connection back."""
        self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        close = getattr(get_layer(), "close_pools", None)
        if close is not None:
            await close()

    async def _send(self, changes: Iterable[Change]) -> None:
        layer = get_layer()
        async with asyncio.timeout(PATIENCE):
            waiting = list(changes)
            for start in range(0, len(waiting), MOST):
                await layer.group_send(group(), encode(waiting[start : start + MOST]))


def make_publisher() -> Publisher | None:
    return Publisher() if links_processes() else None


def encode(changes: Iterable[Change]) -> dict[str, Any]:
    return {
        "type": TYPE,
        "from": process.name,
        "changes": [
            [
                one.topic,
                one.server,
                None if one.users is None else sorted(one.users),
                one.is_hidden,
                one.is_whole,
                one.model,
            ]
            for one in changes
        ],
    }


#: A change, as `encode` writes it.
Wire: TypeAlias = tuple[str, str | None, list[str] | None, bool, bool, str]


def decode(message: Any) -> frozenset[Change]:
    """The changes of a message, none where it is ours or no message of this kind.

    One that another release wrote in its own way says that something changed.
    """
    if message.get("type") != TYPE or message.get("from") == process.name:
        return frozenset()
    try:
        found = msgspec.convert(message.get("changes"), list[Wire])
    except msgspec.ValidationError:
        return frozenset({EVERYTHING})
    return frozenset(
        Change(
            topic=topic,
            server=server,
            users=None if users is None else frozenset(users),
            is_hidden=is_hidden,
            is_whole=is_whole,
            model=model,
        )
        for topic, server, users, is_hidden, is_whole, model in found
    )


def is_decision(change: Change) -> bool:
    """Whether it follows from a right or a switch, which this process keeps for a second."""
    return change.topic in LISTS or change.topic.startswith(f"{CLOSE} ")


class Link:
    """Hears what other processes publish, for one loop."""

    def __init__(
        self, take: Callable[[frozenset[Change]], None], *, lost: Callable[[], None]
    ) -> None:
        self._take = take
        self._lost = lost
        self._has_lost = False
        self._is_up = asyncio.Event()

    async def ready(self) -> None:
        """Until changes of others are heard, or it takes too long to wait for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._is_up.wait()
        # What comes before the link is up would be missed.
        self._has_lost = self._has_lost or not self._is_up.is_set()

    async def run(self) -> None:
        """For as long as the loop lives. While the layer is gone everything else goes on."""
        while True:
            try:
                await self._hear()
            except Exception as error:
                if not self._has_lost:
                    reason = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
                    logger.error("Changes of other processes are not heard: %s", reason)
                self._has_lost = True
                await asyncio.sleep(PAUSE)

    async def _hear(self) -> None:
        layer = get_layer()
        channel = await layer.new_channel()
        await layer.group_add(group(), channel)
        if self._has_lost:
            logger.info("Changes of other processes are heard again.")
            self._has_lost = False
            self._lost()
        self._is_up.set()
        try:
            # The first that fails ends the other, and the attempt.
            async with asyncio.TaskGroup() as both:
                both.create_task(self._beat(layer, channel))
                both.create_task(self._receive(layer, channel))
        finally:
            self._is_up.clear()
            with suppress(Exception):
                await layer.group_discard(group(), channel)

    async def _receive(self, layer: Any, channel: str) -> None:
        while True:
            changes = decode(await layer.receive(channel))
            if any(map(is_decision, changes)):
                # Who is told asks at once, and must not get what was true a second ago.
                generations.forget()
            self._take(changes)

    async def _beat(self, layer: Any, channel: str) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            async with asyncio.timeout(PATIENCE):
                await layer.group_add(group(), channel)
