"""A store in Redis, for any number of processes. What is not used expires by itself.

Each method is one script or one command, and so atomic. Redis Cluster is not supported: it has the
keys of a session in different places.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from mcp_django.conf import get_config
from mcp_django.signing import digest_of
from mcp_django.stores import bounds
from mcp_django.stores.bounds import Clock, Dice
from mcp_django.stores.interface import Event, Log, OpenStream, Page, Question, Session, StoreFull

# What the store "redis" does in one step: scripts that Redis runs with nothing in between.
#
# Keys, each behind the prefix:
#
# session:KEY        a hash: the fields of the session (JSON), standalone, theirs
# principal:DIGEST   a set: the keys of its sessions
# sessions           a sorted set: the keys of sessions by the time when they were made
# subscriptions:KEY  a set of URIs, of one session
# logs:KEY           a list of the keys of its logs, oldest first
# log:KEY            a hash: session, owner, request, first, last, size, final
# events:KEY         a list of the log's events, from number `first` on
# questions:KEY      a set of digests, of one session
# question:DIGEST    a hash: session, owner, asked, answer
# lease:OWNER        when it was renewed
# streams            a hash: streams by key, each its owner, a line feed and JSON
#
# Times are microseconds since 1970 as text: Lua would write such a number in another way.
# Whatever belongs to a session expires with it. What was forgotten but not yet expired is seen
# by its time.

MICROSECOND = timedelta(microseconds=1)

CONSTANTS = "".join(
    f"local {name} = {value}\n"
    for name, value in {
        "LEASE": bounds.LEASE // MICROSECOND,
        "SEEN_EVERY": bounds.SEEN_EVERY // MICROSECOND,
        "KEPT": bounds.KEPT // MICROSECOND,
        "QUESTION_LIFE": bounds.QUESTION_LIFE // MICROSECOND,
        "MOST_EVENTS": bounds.MOST_EVENTS,
        "MOST_BYTES": bounds.MOST_BYTES,
        "MOST_LOGS": bounds.MOST_LOGS,
        "MOST_QUESTIONS": bounds.MOST_QUESTIONS,
    }.items()
)

#: In front of every script. Its own arguments begin with ARGV[3].
COMMON = (
    CONSTANTS
    + """
local P, now, idle = KEYS[1], ARGV[1], tonumber(ARGV[2])
local t = tonumber(now)
local call = redis.call

local function expire(key, microseconds)
  call('PEXPIRE', P .. key, math.floor(microseconds / 1000) + 1)
end

local function live(session)
  local seen = call('HGET', P .. 'session:' .. session, 'seen')
  return seen and tonumber(seen) > t - idle
end

local function holds(owner)
  local renewed = call('GET', P .. 'lease:' .. owner)
  return renewed and tonumber(renewed) > t - LEASE
end

local function renew(owner)
  call('SET', P .. 'lease:' .. owner, now, 'PX', LEASE / 1000)
end

local function drop_log(session, key)
  call('LREM', P .. 'logs:' .. session, 0, key)
  return call('DEL', P .. 'log:' .. key, P .. 'events:' .. key) > 0 and 1 or 0
end

local function is_old(key)
  local final = call('HGET', P .. 'log:' .. key, 'final')
  return final and tonumber(final) <= t - KEPT
end

local function drop_question(session, digest)
  call('SREM', P .. 'questions:' .. session, digest)
  return call('DEL', P .. 'question:' .. digest)
end

local function is_awaited(digest)
  local asked = call('HMGET', P .. 'question:' .. digest, 'asked', 'owner')
  return asked[1] and tonumber(asked[1]) > t - QUESTION_LIFE and holds(asked[2])
end

local function is_open(digest)
  return is_awaited(digest) and call('HEXISTS', P .. 'question:' .. digest, 'answer') == 0
end

local function drop_session(session)
  local gone = 0
  local theirs = call('HGET', P .. 'session:' .. session, 'theirs')
  if theirs then call('SREM', P .. theirs, session) end
  for _, key in ipairs(call('LRANGE', P .. 'logs:' .. session, 0, -1)) do
    gone = gone + drop_log(session, key)
  end
  for _, digest in ipairs(call('SMEMBERS', P .. 'questions:' .. session)) do
    gone = gone + drop_question(session, digest)
  end
  call('DEL', P .. 'subscriptions:' .. session)
  call('ZREM', P .. 'sessions', session)
  return gone + call('DEL', P .. 'session:' .. session)
end
"""
)

ADD_SESSION = """
local session, created, theirs, most = ARGV[3], ARGV[4], 'principal:' .. ARGV[5], tonumber(ARGV[6])
while call('SCARD', P .. theirs) >= most do
  local oldest, least = nil, nil
  for _, other in ipairs(call('SMEMBERS', P .. theirs)) do
    local seen = live(other) and tonumber(call('HGET', P .. 'session:' .. other, 'seen')) or 0
    if not least or seen < least then oldest, least = other, seen end
  end
  drop_session(oldest)
  call('SREM', P .. theirs, oldest)
end
call('SADD', P .. theirs, session)
expire(theirs, idle)
call('HSET', P .. 'session:' .. session, 'theirs', theirs, unpack(ARGV, 7))
call('ZADD', P .. 'sessions', created, session)
expire('session:' .. session, idle)
"""

SEE = """
local session = ARGV[3]
if not live(session) then return end
if tonumber(call('HGET', P .. 'session:' .. session, 'seen')) > t - SEEN_EVERY then return end
call('HSET', P .. 'session:' .. session, 'seen', now)
for _, kind in ipairs({'session:', 'subscriptions:', 'logs:', 'questions:'}) do
  expire(kind .. session, idle)
end
expire(call('HGET', P .. 'session:' .. session, 'theirs'), idle)
for _, key in ipairs(call('LRANGE', P .. 'logs:' .. session, 0, -1)) do
  if not call('HGET', P .. 'log:' .. key, 'final') then
    expire('log:' .. key, idle)
    expire('events:' .. key, idle)
  end
end
"""

SET_FIELDS = """
if live(ARGV[3]) then call('HSET', P .. 'session:' .. ARGV[3], unpack(ARGV, 4)) end
"""

END_SESSION = """
local was_live = live(ARGV[3])
drop_session(ARGV[3])
return was_live and 1 or 0
"""

HOLD_STANDALONE = """
local session, owner = ARGV[3], ARGV[4]
if not live(session) then return 0 end
local holder = call('HGET', P .. 'session:' .. session, 'standalone')
if holder and holder ~= owner and holds(holder) then return 0 end
renew(owner)
call('HSET', P .. 'session:' .. session, 'standalone', owner)
return 1
"""

FREE_STANDALONE = """
local key = P .. 'session:' .. ARGV[3]
if call('HGET', key, 'standalone') == ARGV[4] then call('HDEL', key, 'standalone') end
"""

SUBSCRIBE = """
local session, uri, most = ARGV[3], ARGV[4], tonumber(ARGV[5])
local key = P .. 'subscriptions:' .. session
if not live(session) then return 0 end
if call('SISMEMBER', key, uri) == 1 then return 1 end
if call('SCARD', key) >= most then return 0 end
call('SADD', key, uri)
expire('subscriptions:' .. session, idle)
return 1
"""

OPEN_LOG = """
local session, key, owner, request = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
renew(owner)
if not live(session) then return 1 end
if call('LLEN', P .. 'logs:' .. session) >= MOST_LOGS then
  local spare = nil
  for _, other in ipairs(call('LRANGE', P .. 'logs:' .. session, 0, -1)) do
    local log = call('HMGET', P .. 'log:' .. other, 'owner', 'final')
    if not log[1] or log[2] or not holds(log[1]) then spare = other break end
  end
  if not spare then return 0 end
  drop_log(session, spare)
end
call('HSET', P .. 'log:' .. key, 'session', session, 'owner', owner, 'request', request,
  'first', 1, 'last', 0, 'size', 0)
call('RPUSH', P .. 'logs:' .. session, key)
expire('log:' .. key, idle)
expire('logs:' .. session, idle)
return 1
"""

#: Returns whether the events were added, and the last number.
ADD_EVENTS = """
local key, is_final, only_orphan = ARGV[3], ARGV[4] == '1', ARGV[5] == '1'
local log = call('HMGET', P .. 'log:' .. key, 'last', 'first', 'size', 'final', 'owner')
if not log[1] then return {0, 0} end
local last, first, size = tonumber(log[1]), tonumber(log[2]), tonumber(log[3])
if log[4] or (only_orphan and holds(log[5])) then return {0, last} end
for i = 6, #ARGV do
  call('RPUSH', P .. 'events:' .. key, ARGV[i])
  last, size = last + 1, size + #ARGV[i]
end
while last - first >= MOST_EVENTS or (size > MOST_BYTES and last > first) do
  size = size - #call('LPOP', P .. 'events:' .. key)
  first = first + 1
end
call('HSET', P .. 'log:' .. key, 'last', last, 'first', first, 'size', size)
if is_final then call('HSET', P .. 'log:' .. key, 'final', now) end
expire('log:' .. key, is_final and KEPT or idle)
expire('events:' .. key, is_final and KEPT or idle)
return {1, last}
"""

#: Returns first, whether it is final, whether its owner lives, request, events. Or nothing.
READ = """
local key, session, after = ARGV[3], ARGV[4], tonumber(ARGV[5])
local log = call('HMGET', P .. 'log:' .. key, 'session', 'owner', 'request', 'first', 'final')
if log[1] ~= session or not live(session) or is_old(key) then return {} end
local first = tonumber(log[4])
local events = call('LRANGE', P .. 'events:' .. key, math.max(after + 1 - first, 0), -1)
return {first, log[5] and 1 or 0, holds(log[2]) and 1 or 0, log[3], events}
"""

ASK = """
local session, digest, owner = ARGV[3], ARGV[4], ARGV[5]
renew(owner)
if not live(session) then return 1 end
local open = 0
for _, other in ipairs(call('SMEMBERS', P .. 'questions:' .. session)) do
  if is_open(other) then open = open + 1 end
end
if open >= MOST_QUESTIONS then return 0 end
call('HSET', P .. 'question:' .. digest, 'session', session, 'owner', owner, 'asked', now)
call('SADD', P .. 'questions:' .. session, digest)
expire('question:' .. digest, QUESTION_LIFE)
expire('questions:' .. session, idle)
return 1
"""

ANSWER = """
local session, digest, answer = ARGV[3], ARGV[4], ARGV[5]
if call('HGET', P .. 'question:' .. digest, 'session') ~= session then return 0 end
if not live(session) or not is_open(digest) then return 0 end
call('HSET', P .. 'question:' .. digest, 'answer', answer)
return 1
"""

#: With '1' only a question that was answered goes. Returns the answer, if there is one.
DROP_QUESTION = """
local digest, only_answered = ARGV[3], ARGV[4] == '1'
local question = call('HMGET', P .. 'question:' .. digest, 'session', 'answer')
if not question[1] or (only_answered and not question[2]) then return {} end
drop_question(question[1], digest)
return {question[2]}
"""

RENEW = "renew(ARGV[3])"

SHOW_STREAM = """
renew(ARGV[4])
call('HSET', P .. 'streams', ARGV[3], ARGV[4] .. '\\n' .. ARGV[5])
"""

#: What was said of those whose owner lives.
STREAMS = """
local said = {}
for _, stream in ipairs(call('HVALS', P .. 'streams')) do
  local at = string.find(stream, '\\n', 1, true)
  if holds(string.sub(stream, 1, at - 1)) then said[#said + 1] = string.sub(stream, at + 1) end
end
return said
"""

PRUNE = """
local gone = 0
for _, session in ipairs(call('ZRANGE', P .. 'sessions', 0, -1)) do
  if not live(session) then
    gone = gone + drop_session(session)
  else
    for _, key in ipairs(call('LRANGE', P .. 'logs:' .. session, 0, -1)) do
      if is_old(key) or call('EXISTS', P .. 'log:' .. key) == 0 then
        gone = gone + drop_log(session, key)
      end
    end
    for _, digest in ipairs(call('SMEMBERS', P .. 'questions:' .. session)) do
      if not is_awaited(digest) then gone = gone + drop_question(session, digest) end
    end
  end
end
local streams = call('HGETALL', P .. 'streams')
for i = 1, #streams, 2 do
  local owner = string.sub(streams[i + 1], 1, string.find(streams[i + 1], '\\n', 1, true) - 1)
  if not holds(owner) then gone = gone + call('HDEL', P .. 'streams', streams[i]) end
end
return gone
"""


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
    # Not the zone of the caller, which middleware may have activated.
    return timezone.make_naive(time, timezone.get_default_timezone())


def flat_fields(fields: Mapping[str, Any]) -> list[str]:
    return [part for name, value in fields.items() for part in (name, json.dumps(value))]


class RedisStore:
    def __init__(
        self, *, clock: Clock = timezone.now, dice: Dice = random.random, prefix: str = PREFIX
    ) -> None:
        self.clock = clock
        self.dice = dice
        self.prefix = prefix
        self.client = connect()
        self._scripts: dict[str, Any] = {}

    def _run(self, script: str, *arguments: Any) -> Any:
        if script not in self._scripts:
            self._scripts[script] = self.client.register_script(COMMON + script)
        now, idle = encoded_time(self.clock()), bounds.idle_limit() // MICROSECOND
        return self._scripts[script](keys=[self.prefix], args=[now, idle, *arguments])

    # Sessions

    def add_session(self, session: Session) -> None:
        if self.dice() < bounds.PRUNE_SHARE:
            self.prune()
        created, seen = encoded_time(session.created), encoded_time(session.seen)
        fields = flat_fields({**asdict(session), "created": created, "seen": seen})
        principal, most = digest_of(session.principal), bounds.most_sessions(session.user)
        self._run(ADD_SESSION, session.key, created, principal, most, *fields)

    def session(self, key: str) -> Session | None:
        return self._decoded(self.client.hgetall(f"{self.prefix}session:{key}"))

    def _decoded(self, fields: dict[bytes, bytes]) -> Session | None:
        if not fields:
            return None
        values = {name: json.loads(fields[name.encode()]) for name in Session.__dataclass_fields__}
        times = {name: decoded_time(values[name]) for name in ("created", "seen")}
        is_idle = self.clock() - times["seen"] >= bounds.idle_limit()
        return None if is_idle else Session(**{**values, **times})

    def see(self, key: str) -> None:
        self._run(SEE, key)

    def update_session(self, key: str, **fields: Any) -> None:
        self._run(SET_FIELDS, key, *flat_fields(fields))

    def end_session(self, key: str) -> bool:
        return bool(self._run(END_SESSION, key))

    def sessions(self) -> list[Session]:
        pipeline = self.client.pipeline(transaction=False)
        for key in self.client.zrevrange(f"{self.prefix}sessions", 0, -1):
            pipeline.hgetall(f"{self.prefix}session:{key.decode()}")
        return [session for session in map(self._decoded, pipeline.execute()) if session]

    def hold_standalone(self, session: str, *, owner: str) -> bool:
        return bool(self._run(HOLD_STANDALONE, session, owner))

    def free_standalone(self, session: str, *, owner: str) -> None:
        self._run(FREE_STANDALONE, session, owner)

    # Subscriptions of sessions

    def subscribe(self, session: str, uri: str, *, most: int) -> bool:
        return bool(self._run(SUBSCRIBE, session, uri, most))

    def unsubscribe(self, session: str, uri: str) -> None:
        self.client.srem(f"{self.prefix}subscriptions:{session}", uri)

    def subscriptions(self, session: str) -> frozenset[str]:
        if self.session(session) is None:
            return frozenset()
        uris = self.client.smembers(f"{self.prefix}subscriptions:{session}")
        return frozenset(uri.decode() for uri in uris)

    # Event logs

    def open_log(self, log: Log) -> None:
        if not self._run(OPEN_LOG, log.session, log.key, log.owner, log.request):
            raise StoreFull("The session has too many streams that go on.")

    def append(self, key: str, events: Sequence[bytes], *, is_final: bool = False) -> int:
        _, last = self._run(ADD_EVENTS, key, int(is_final), 0, *events)
        return int(last)

    def read(self, key: str, *, session: str, after: int) -> Page | None:
        after = min(max(after, 0), FAR)
        found = self._run(READ, key, session, after)
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
        was_added, _ = self._run(ADD_EVENTS, key, 1, 1, event)
        return bool(was_added)

    def renew(self, owner: str) -> None:
        self._run(RENEW, owner)

    # Questions

    def ask(self, question: Question) -> None:
        if not self._run(ASK, question.session, digest_of(question.id), question.owner):
            raise StoreFull("The session has too many open questions.")

    def answer(self, session: str, question: str, answer: bytes) -> bool:
        return bool(self._run(ANSWER, session, digest_of(question), answer))

    def take_answer(self, question: str) -> bytes | None:
        found = self._run(DROP_QUESTION, digest_of(question), 1)
        return found[0] if found else None

    def withdraw(self, question: str) -> None:
        self._run(DROP_QUESTION, digest_of(question), 0)

    # Open streams, for the admin

    def show_stream(self, stream: OpenStream) -> None:
        said = {**asdict(stream), "opened": encoded_time(stream.opened)}
        self._run(SHOW_STREAM, stream.key, stream.owner, json.dumps(said))

    def hide_stream(self, key: str) -> None:
        self.client.hdel(f"{self.prefix}streams", key)

    def streams(self) -> list[OpenStream]:
        said = [json.loads(one) for one in self._run(STREAMS)]
        said.sort(key=lambda one: one["opened"], reverse=True)
        return [
            OpenStream(
                **{**one, "opened": decoded_time(one["opened"]), "topics": tuple(one["topics"])}
            )
            for one in said
        ]

    # Upkeep

    def prune(self) -> int:
        return int(self._run(PRUNE))
