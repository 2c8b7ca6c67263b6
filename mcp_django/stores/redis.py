"""A store in Redis: right with any number of processes. What nobody asks for expires by itself.

Each method is one script or one command, and so happens whole or not at all. Not for Redis
Cluster: the keys of a session are in different places there.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from mcp_django.conf import get_config
from mcp_django.stores import redis_scripts as scripts
from mcp_django.stores.bounds import (
    PRUNE_SHARE,
    SEEN_EVERY,
    Clock,
    Dice,
    digest_of,
    idle_limit,
    most_sessions,
)
from mcp_django.stores.interface import (
    Event,
    Log,
    OpenStream,
    Page,
    Question,
    Session,
    StoreFull,
)
from mcp_django.stores.last_seen import LastSeen
from mcp_django.stores.redis_scripts import MICROSECOND

PREFIX = "mcp_django:"
#: Seconds that a command may take. Longer, and Redis is gone.
TIMEOUT = 2.0
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Beyond any number of an event, and still exact in Lua.
FAR = 2**53


def connect() -> Any:
    url = get_config().store_url
    if not url:
        raise ImproperlyConfigured(
            "MCP_DJANGO['STORE'] is 'redis', and STORE_URL does not say where Redis is."
        )
    try:
        # No second attempt: a command that timed out may have been done.
        return Redis.from_url(
            url,
            socket_timeout=TIMEOUT,
            socket_connect_timeout=TIMEOUT,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise ImproperlyConfigured(f"MCP_DJANGO['STORE_URL'] cannot be used: {error}") from error


def encoded_time(time: datetime) -> int:
    return (time.astimezone(UTC) - EPOCH) // MICROSECOND


def decoded_time(number: int | bytes) -> datetime:
    time = EPOCH + int(number) * MICROSECOND
    if settings.USE_TZ:
        return time
    # Not the zone of whoever asks, which middleware may have activated.
    return timezone.make_naive(time, timezone.get_default_timezone())


class RedisStore:
    def __init__(
        self, *, clock: Clock = timezone.now, dice: Dice = random.random, prefix: str = PREFIX
    ) -> None:
        self.clock = clock
        self.dice = dice
        self.prefix = prefix
        self.client = connect()
        self._last_seen = LastSeen()
        self._scripts: dict[str, Any] = {}

    def _run(self, script: str, *arguments: Any) -> Any:
        known = self._scripts.get(script)
        if known is None:
            known = self.client.register_script(scripts.COMMON + script)
            self._scripts[script] = known
        now, idle = encoded_time(self.clock()), idle_limit() // MICROSECOND
        return known(keys=[self.prefix], args=[now, idle, *arguments])

    # Sessions

    def add_session(self, session: Session) -> None:
        if self.dice() < PRUNE_SHARE:
            self.prune()
        said = asdict(session)
        created, seen = encoded_time(said.pop("created")), encoded_time(said.pop("seen"))
        fields = {"said": json.dumps(said), "created": created, "seen": seen}
        flat = [part for field in fields.items() for part in field]
        principal, most = digest_of(session.principal), most_sessions(session.user)
        self._run(scripts.ADD_SESSION, session.key, created, principal, most, *flat)
        self._last_seen.note(session.key, session.seen)

    def session(self, key: str) -> Session | None:
        found = self._decoded(self.client.hgetall(f"{self.prefix}session:{key}"))
        if found is not None:
            self._last_seen.note(key, found.seen)
        return found

    def _decoded(self, fields: dict[bytes, bytes]) -> Session | None:
        if not fields:
            return None
        seen = decoded_time(fields[b"seen"])
        if self.clock() - seen >= idle_limit():
            return None
        said = {**json.loads(fields[b"said"]), **json.loads(fields.get(b"agreed", b"{}"))}
        if b"log_level" in fields:
            said["log_level"] = fields[b"log_level"].decode()
        said["is_initialized"] = said["is_initialized"] or b"is_initialized" in fields
        return Session(**said, created=decoded_time(fields[b"created"]), seen=seen)

    def see(self, key: str) -> None:
        if not self._last_seen.is_within(SEEN_EVERY, key, now=self.clock()):
            seen = self._run(scripts.SEE, key)
            self._last_seen.note(key, decoded_time(seen) if seen else None)

    def agree(
        self,
        key: str,
        *,
        revision: str,
        client: Mapping[str, Any],
        capabilities: Mapping[str, Any],
    ) -> None:
        agreed = {"revision": revision, "client": client, "capabilities": capabilities}
        self._run(scripts.SET_FIELD, key, "agreed", json.dumps(agreed))

    def initialized(self, key: str) -> None:
        self._run(scripts.SET_FIELD, key, "is_initialized", 1)

    def set_log_level(self, key: str, level: str) -> None:
        self._run(scripts.SET_FIELD, key, "log_level", level)

    def end_session(self, key: str) -> bool:
        return bool(self._run(scripts.END_SESSION, key))

    def sessions(self) -> list[Session]:
        pipeline = self.client.pipeline(transaction=False)
        for key in self.client.zrevrange(f"{self.prefix}sessions", 0, -1):
            pipeline.hgetall(f"{self.prefix}session:{key.decode()}")
        found = map(self._decoded, pipeline.execute())
        return [one for one in found if one is not None]

    def hold_standalone(self, session: str, *, owner: str) -> bool:
        return bool(self._run(scripts.HOLD_STANDALONE, session, owner))

    def free_standalone(self, session: str, *, owner: str) -> None:
        self._run(scripts.FREE_STANDALONE, session, owner)

    # Subscriptions of sessions

    def subscribe(self, session: str, uri: str, *, most: int) -> bool:
        return bool(self._run(scripts.SUBSCRIBE, session, uri, most))

    def unsubscribe(self, session: str, uri: str) -> None:
        self.client.srem(f"{self.prefix}subscriptions:{session}", uri)

    def subscriptions(self, session: str) -> frozenset[str]:
        if self.session(session) is None:
            return frozenset()
        uris = self.client.smembers(f"{self.prefix}subscriptions:{session}")
        return frozenset(uri.decode() for uri in uris)

    # Event logs

    def open_log(self, log: Log) -> None:
        if not self._run(scripts.OPEN_LOG, log.session, log.key, log.owner, log.request):
            raise StoreFull("The session has too many streams that go on.")

    def append(self, key: str, events: Sequence[bytes], *, is_final: bool = False) -> int:
        _, last = self._run(scripts.ADD_EVENTS, key, int(is_final), 0, *events)
        return int(last)

    def read(self, key: str, *, session: str, after: int) -> Page | None:
        after = min(max(after, 0), FAR)
        found = self._run(scripts.READ, key, session, after)
        if not found:
            return None
        first, is_final, is_held, request, events = found
        return Page(
            events=[
                Event(number=number, data=data)
                for number, data in enumerate(events, max(after + 1, first))
            ],
            is_final=bool(is_final),
            is_orphaned=not is_final and not is_held,
            has_gap=first > after + 1,
            request=request.decode(),
        )

    def close_orphan(self, key: str, event: bytes) -> bool:
        was_added, _ = self._run(scripts.ADD_EVENTS, key, 1, 1, event)
        return bool(was_added)

    def renew(self, owner: str) -> None:
        self._run(scripts.RENEW, owner)

    # Questions

    def ask(self, question: Question) -> None:
        if not self._run(scripts.ASK, question.session, digest_of(question.id), question.owner):
            raise StoreFull("The session has too many open questions.")

    def answer(self, session: str, question: str, answer: bytes) -> bool:
        return bool(self._run(scripts.ANSWER, session, digest_of(question), answer))

    def take_answer(self, question: str) -> bytes | None:
        found = self._run(scripts.DROP_QUESTION, digest_of(question), 1)
        return found[0] if found else None

    def withdraw(self, question: str) -> None:
        self._run(scripts.DROP_QUESTION, digest_of(question), 0)

    # Open streams, for the admin

    def show_stream(self, stream: OpenStream) -> None:
        said = {**asdict(stream), "opened": encoded_time(stream.opened)}
        self._run(scripts.SHOW_STREAM, stream.key, stream.owner, json.dumps(said))

    def hide_stream(self, key: str) -> None:
        self.client.hdel(f"{self.prefix}streams", key)

    def streams(self) -> list[OpenStream]:
        said = [json.loads(one) for one in self._run(scripts.STREAMS)]
        said.sort(key=lambda one: one["opened"], reverse=True)
        return [
            OpenStream(
                **{**one, "opened": decoded_time(one["opened"]), "topics": tuple(one["topics"])}
            )
            for one in said
        ]

    # Upkeep

    def prune(self) -> int:
        return int(self._run(scripts.PRUNE))
