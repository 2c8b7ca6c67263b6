"""Between the processes of a site: changes as messages on one group of the channel layer.

Messages carry identifiers, never content. Whenever one may have been lost, everything is
announced: that costs clients a read too many, never data.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import astuple, fields
from typing import Any, TypeAlias

import msgspec
from channels import DEFAULT_CHANNEL_LAYER
from channels.layers import channel_layers
from django.conf import settings
from django.utils.crypto import salted_hmac

from mcp_django.stores.cache_version import generations
from mcp_django.subscriptions.topics import CLOSE, EVERYTHING, LISTS, Change

logger = logging.getLogger("mcp_django.streams")

#: Of the messages, for Channels' consumers that listen to the group by mistake.
TYPE = "mcp.changes"
#: Changes in one message: some layers take no more than 8 kB.
MOST = 50
#: Seconds that sending may take. The next change must not wait for a layer that hangs.
PATIENCE = 2.0
#: Seconds between two messages of a process to itself: the layer works where they come back.
#: Some layers connect again by themselves and say nothing of what they lost meanwhile.
HEARTBEAT = 2.0
#: Seconds before another attempt to reach a layer that is gone.
PAUSE = 1.0


#: Of this process and of those that it forks.
FAMILY = secrets.token_urlsafe(8)


def own_name() -> str:
    """Tells our own messages from those of other processes."""
    return f"{FAMILY}.{os.getpid()}"


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
    """The sink of the outbox that tells other processes. Called in the outbox's thread, with a
    loop of its own: a connection serves for all messages.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        #: Whoever has it runs the loop.
        self._lock = threading.Lock()
        self._has_lost = False
        self._timer: threading.Timer | None = None

    def __call__(self, changes: Iterable[Change] = ()) -> None:
        """Send them. Where that fails, all processes are told that everything may have changed as
        soon as the layer is back, by the next batch or by a timer.
        """
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            try:
                self._runner.run(self._send({EVERYTHING, *changes} if self._has_lost else changes))
            except Exception as error:
                if not self._has_lost:
                    logger.error("Other processes cannot be told of changes: %s", error)
                self._has_lost = True
                self._try_again_later()
            else:
                if self._has_lost:
                    logger.info("Other processes are told of changes again.")
                self._has_lost = False

    def _try_again_later(self) -> None:
        timer = threading.Timer(PAUSE, self)
        timer.daemon = True
        # Late at the end of a process there are no new threads.
        with suppress(RuntimeError):
            timer.start()
            self._timer = timer

    async def _send(self, changes: Iterable[Change]) -> None:
        layer = get_layer()
        async with asyncio.timeout(PATIENCE):
            waiting = list(changes)
            for start in range(0, len(waiting), MOST):
                await layer.group_send(group(), encode(waiting[start : start + MOST]))


def make_publisher() -> Publisher | None:
    return Publisher() if links_processes() else None


#: The fields of a change, in their order.
NAMES = tuple(field.name for field in fields(Change))
Wire: TypeAlias = tuple[str, str | None, frozenset[str] | None, bool, bool, str, str]


def encode(changes: Iterable[Change]) -> dict[str, Any]:
    wire = [msgspec.to_builtins(astuple(change)) for change in changes]
    return {"type": TYPE, "from": own_name(), "changes": wire}


def decode(message: Any) -> frozenset[Change]:
    """The changes of a message, none where it is ours or no message of this kind.

    A message in the format of another release means that anything may have changed.
    """
    if message.get("type") != TYPE or message.get("from") == own_name():
        return frozenset()
    try:
        wire = msgspec.convert(message.get("changes"), list[Wire])
    except msgspec.ValidationError:
        return frozenset({EVERYTHING})
    changes: list[dict[str, Any]] = [dict(zip(NAMES, values, strict=True)) for values in wire]
    return frozenset(Change(**change) for change in changes)


def is_decision(change: Change) -> bool:
    """Whether it follows from a right or a switch, which this process keeps for a second."""
    return change.topic in LISTS or change.topic.startswith(f"{CLOSE} ")


class Link:
    """Hears what other processes publish, for one loop, and notices when it may have missed
    something: each attempt to hear ends when a message to itself does not come back.
    """

    def __init__(
        self, take: Callable[[frozenset[Change]], None], *, lost: Callable[[], None]
    ) -> None:
        self._take = take
        self._lost = lost
        self._has_lost = False
        self._is_up = asyncio.Event()
        #: Only this link is a member. Who shares the layer sends nothing there.
        self._own_group = f"{group()}.{secrets.token_urlsafe(8)}"
        self._came_back = asyncio.Event()

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
        async with asyncio.timeout(PATIENCE):
            channel = await layer.new_channel()
        try:
            # The first that fails ends the other, and the attempt.
            async with asyncio.TaskGroup() as both:
                both.create_task(self._keep_up(layer, channel))
                both.create_task(self._receive(layer, channel))
        finally:
            self._is_up.clear()
            for name in (self._own_group, group()):
                with suppress(Exception):
                    await layer.group_discard(name, channel)

    async def _keep_up(self, layer: Any, channel: str) -> None:
        await self._join(layer, channel)
        while True:
            async with asyncio.timeout(PATIENCE):
                self._came_back.clear()
                beat = {"type": TYPE, "from": own_name(), "beat": True}
                await layer.group_send(self._own_group, beat)
                # What was sent to the group comes then as well.
                await self._came_back.wait()
                # Layers forget members that are not added again for long enough.
                await self._join(layer, channel)
            if self._has_lost:
                logger.info("Changes of other processes are heard again.")
                self._has_lost = False
                self._lost()
            self._is_up.set()
            await asyncio.sleep(HEARTBEAT)

    async def _join(self, layer: Any, channel: str) -> None:
        async with asyncio.timeout(PATIENCE):
            for name in (group(), self._own_group):
                await layer.group_add(name, channel)

    async def _receive(self, layer: Any, channel: str) -> None:
        while True:
            message = await layer.receive(channel)
            if "beat" in message:
                self._came_back.set()
                continue
            changes = decode(message)
            if any(map(is_decision, changes)):
                # Clients ask at once, and must not get what was true a second ago.
                generations.forget()
            self._take(changes)
