"""What the store "redis" does in one step: scripts that Redis runs with nothing in between.

Keys, each behind the prefix:

    session:KEY        a hash: said and agreed (JSON), created, seen, is_initialized, log_level,
                       standalone, theirs
    principal:DIGEST   a set: the keys of its sessions
    sessions           a sorted set: the keys of sessions by the time when they were made
    subscriptions:KEY  a set of URIs, of one session
    logs:KEY           a list of the keys of its logs, oldest first
    log:KEY            a hash: session, owner, request, first, last, size, final
    events:KEY         a list of the log's events, from number `first` on
    questions:KEY      a set of digests, of one session
    question:DIGEST    a hash: session, owner, asked, answer
    lease:OWNER        when it was renewed
    streams            a hash: streams by key, each its owner, a line feed and JSON

Times are microseconds since 1970 as text: Lua would write such a number in another way. Whatever
belongs to a session expires with it. What was forgotten but not yet expired is seen by its time.
"""

from __future__ import annotations

from datetime import timedelta

from mcp_django.stores.bounds import (
    KEPT,
    LEASE,
    MOST_BYTES,
    MOST_EVENTS,
    MOST_LOGS,
    MOST_QUESTIONS,
    QUESTION_LIFE,
    SEEN_EVERY,
)

MICROSECOND = timedelta(microseconds=1)

CONSTANTS = "".join(
    f"local {name} = {value}\n"
    for name, value in {
        "LEASE": LEASE // MICROSECOND,
        "SEEN_EVERY": SEEN_EVERY // MICROSECOND,
        "KEPT": KEPT // MICROSECOND,
        "QUESTION_LIFE": QUESTION_LIFE // MICROSECOND,
        "MOST_EVENTS": MOST_EVENTS,
        "MOST_BYTES": MOST_BYTES,
        "MOST_LOGS": MOST_LOGS,
        "MOST_QUESTIONS": MOST_QUESTIONS,
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
if not live(session) then return '' end
local seen = call('HGET', P .. 'session:' .. session, 'seen')
if tonumber(seen) > t - SEEN_EVERY then return seen end
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
return now
"""

SET_FIELD = """
if live(ARGV[3]) then call('HSET', P .. 'session:' .. ARGV[3], ARGV[4], ARGV[5]) end
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
