"""The keys of the checkpoints, and the scripts for them.

| key | type | content |
|---|---|---|
| `PREFIXthread:{SHARD}:DIGEST:heads` | sorted set | the heads, see `records.py`, by sequence |
| `PREFIXthread:{SHARD}:DIGEST:payloads` | hash | revision -> sequence and payload |
| `PREFIXthread:{SHARD}:DIGEST:names` | hash | checkpoint id -> sequence |
| `PREFIXthreads:{SHARD}` | sorted set | name and digest of each thread, all of score 0 |

The digest of its name puts a thread into one of 64 shards. The text in braces decides the slot of
a cluster, so a thread and the registry that lists it are always on one server, and are written
together. A revision and a sequence are eight bytes each: Lua's numbers would round the revision.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from locus_memory.backends.redis.connection.connection import Script
from locus_memory.store.encoding import decode_text, encode_text, prefix_upper_bound

__all__ = [
    "COPY",
    "DELETE",
    "LIST",
    "LIST_THREADS",
    "READ",
    "READ_ALL",
    "SAVE",
    "SHARDS",
    "Bounds",
    "ThreadKeys",
    "bounds_of",
    "name_of",
    "registry_key",
    "thread_keys",
]

SHARDS: Final = 64
"""The most slots that threads use: it never changes, or threads would be lost."""

_DIGEST: Final = 16


@dataclass(frozen=True, slots=True)
class ThreadKeys:
    """The keys of one thread.

    Attributes:
        all: The keys, in the order of the scripts' arguments, the registry last.
        member: The thread's member of the registry.
    """

    all: tuple[bytes, bytes, bytes, bytes]
    member: bytes


@lru_cache(maxsize=1024)
def thread_keys(prefix: bytes, thread_id: str) -> ThreadKeys:
    """Return the keys of a thread.

    Args:
        prefix: The prefix of every key.
        thread_id: The thread.
    """
    name = encode_text(thread_id).encode()
    digest = hashlib.blake2b(name, digest_size=_DIGEST)
    named = digest.hexdigest().encode()
    shard = digest.digest()[0] % SHARDS
    stem = b"%bthread:{%02x}:%b:" % (prefix, shard, named)
    keys = (stem + b"heads", stem + b"payloads", stem + b"names", registry_key(prefix, shard))
    return ThreadKeys(keys, name + b"\0" + named)


def registry_key(prefix: bytes, shard: int) -> bytes:
    """Return the key that lists the threads of a shard."""
    return b"%bthreads:{%02x}" % (prefix, shard)


def name_of(member: bytes) -> str:
    """Return the thread of a member of a registry.

    Raises:
        ValueError: The member names no thread.
        KeyError: The same.
        StopIteration: The same.
    """
    return decode_text(member[: -2 * _DIGEST - 1].decode())


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range of a registry, as the arguments of `ZRANGEBYLEX`."""

    lowest: bytes
    highest: bytes


def bounds_of(prefix: str | None, after: str | None) -> Bounds:
    """Return the range of the threads that begin with `prefix` and follow `after`."""
    start = encode_text(prefix or "")
    end = prefix_upper_bound(start)
    lowest = b"[" + start.encode()
    if after:
        # A name is followed by \x00, longer names that begin with it by more than \x01.
        past = encode_text(after).encode() + b"\1"
        lowest = max(lowest, b"[" + past)
    return Bounds(lowest, b"+" if end is None else b"(" + end.encode())


_PRELUDE: Final = r"""
local heads, payloads, names, registry = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FULL = string.rep('\255', 8)

-- Fail because a key of the thread is missing, and other keys prove that it had content.
local function lose(key)
  error('LOSTKEY ' .. key:match('({%x+}:%x+:%a+)$'))
end

-- Fail if only some keys of the thread exist: they are created, deleted and expire together.
local function check_thread()
  local there = redis.call('EXISTS', heads, payloads, names)
  if there == 0 or there == 3 then
    return
  end
  for _, key in ipairs({heads, payloads, names}) do
    if redis.call('EXISTS', key) == 0 then
      lose(key)
    end
  end
end

local function head_at(sequence)
  return redis.call('ZRANGEBYSCORE', heads, sequence, sequence)[1]
end

local function newest()
  local found = redis.call('ZREVRANGE', heads, 0, 0, 'WITHSCORES')
  return found[1], found[2]
end

local function sequence_in(value)
  if value and #value >= 8 then
    return string.format('%.0f', (struct.unpack('>d', value)))
  end
end
"""

_WRITES: Final = r"""
local function put(head, sequence, payload)
  local packed = struct.pack('>d', tonumber(sequence))
  redis.call('HSET', payloads, head:sub(1, 8), packed .. payload)
  redis.call('ZADD', heads, sequence, head)
end

local function overwrite(head, payload)
  local sequence = sequence_in(redis.call('HGET', payloads, head:sub(1, 8)))
  local before = head_at(sequence)
  put(head, sequence, payload)
  if before ~= head then
    redis.call('ZREM', heads, before)
  end
end

local function forget(sequence, head)
  redis.call('ZREMRANGEBYSCORE', heads, sequence, sequence)
  redis.call('HDEL', payloads, head:sub(1, 8))
end

-- Whether a record that stays, or is added, would be without its base.
local function cuts(removed, first_rebased, base)
  local after = {}
  for _, head in ipairs(redis.call('ZRANGE', heads, 0, -1)) do
    if not removed[head:sub(1, 8)] then
      after[head:sub(1, 8)] = head:sub(9, 16)
    end
  end
  for index = first_rebased, #ARGV, 2 do
    local revision = ARGV[index]:sub(1, 8)
    if not after[revision] then
      return true
    end
    after[revision] = ARGV[index]:sub(9, 16)
  end
  for _, link in pairs(after) do
    if link ~= FULL and not after[link] then
      return true
    end
  end
  return base ~= FULL and not after[base]
end

local function expire(milliseconds)
  local keys = {heads, payloads, names}
  if milliseconds ~= '' then
    -- One moment for all keys: a thread exists as a whole or not at all.
    local now = redis.call('TIME')
    local moment = now[1] * 1000 + math.floor(now[2] / 1000) + milliseconds
    for _, key in ipairs(keys) do
      redis.call('PEXPIREAT', key, string.format('%.0f', moment))
    end
  elseif redis.call('PTTL', heads) >= 0 then
    for _, key in ipairs(keys) do
      redis.call('PERSIST', key)
    end
  end
end
"""

# ARGV: member, milliseconds to live or '', checkpoint id, the condition on the parent ('any',
# 'none' or 'is'), the parent's checkpoint id, head, payload; then heads and payloads to rebase.
# An equal record that exists already was written by this very call, whose reply was lost.
SAVE: Final = Script(
    _PRELUDE
    + _WRITES
    + r"""
local name, head, payload = ARGV[3], ARGV[6], ARGV[7]
local revision, base = head:sub(1, 8), head:sub(9, 16)

-- The reply if the record cannot be appended as it is.
local function refuse(answer)
  local sequence = sequence_in(redis.call('HGET', payloads, revision))
  if sequence and head_at(sequence) == head then
    return tonumber(sequence)
  end
  return answer
end

check_thread()
local last, highest = newest()
if ARGV[4] ~= 'any' then
  local known = ARGV[4] == 'is' and redis.call('HGET', names, ARGV[5])
  if (last and known ~= highest) or (ARGV[4] == 'is' and not last) then
    return refuse({'conflict', last or '', highest or ''})
  end
end
local sequence = string.format('%.0f', (tonumber(highest) or 0) + 1)
local replaced = redis.call('HGET', names, name)
local before = replaced and head_at(replaced)
if before or #ARGV > 7 then
  if cuts(before and {[before:sub(1, 8)] = true} or {}, 8, base) then
    return refuse({'stale'})
  end
elseif base ~= FULL and redis.call('HEXISTS', payloads, base) == 0 then
  return {'stale'}
end
if not last then
  redis.call('ZADD', registry, 0, ARGV[1])
end
if redis.call('HSETNX', payloads, revision, struct.pack('>d', sequence) .. payload) == 0 then
  return refuse({'stale'})
end
redis.call('ZADD', heads, sequence, head)
redis.call('HSET', names, name, sequence)
for index = 8, #ARGV, 2 do
  overwrite(ARGV[index], ARGV[index + 1])
end
if before then
  forget(replaced, before)
end
expire(ARGV[2])
return tonumber(sequence)
""",
    idempotent=True,
)

# ARGV: 'newest' or 'named', a checkpoint id, and 'head', 'record' or 'chain'. Returns rows of
# head, sequence, and payload or its length; the requested checkpoint is first.
READ: Final = Script(
    _PRELUDE
    + r"""
local head, sequence
if ARGV[1] == 'named' then
  sequence = redis.call('HGET', names, ARGV[2])
  if not sequence then
    check_thread()
    return {}
  end
  head = head_at(sequence)
  if not head then
    return {{''}}
  end
else
  head, sequence = newest()
  if not head then
    check_thread()
    return {}
  end
end
if ARGV[3] == 'head' then
  return {{head, sequence, redis.call('HSTRLEN', payloads, head:sub(1, 8))}}
end
local value = redis.call('HGET', payloads, head:sub(1, 8))
local rows, seen = {}, {}
while head do
  local base = head:sub(9, 16)
  rows[#rows + 1] = {head, sequence, value}
  seen[head:sub(1, 8)] = true
  if ARGV[3] == 'record' or base == FULL or seen[base] then
    break
  end
  value = redis.call('HGET', payloads, base)
  sequence = sequence_in(value)
  head = sequence and head_at(sequence)
end
return rows
""",
    idempotent=True,
    is_read=True,
)

# ARGV: the highest sequence, the most rows. Returns rows as `READ` does for 'head'.
LIST: Final = Script(
    _PRELUDE
    + r"""
local found = redis.call(
  'ZREVRANGEBYSCORE', heads, ARGV[1], '-inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
if #found == 0 then
  check_thread()
end
local rows = {}
for index = 1, #found, 2 do
  local length = redis.call('HSTRLEN', payloads, found[index]:sub(1, 8))
  rows[#rows + 1] = {found[index], found[index + 1], length}
end
return rows
""",
    idempotent=True,
    is_read=True,
)

# ARGV: the highest sequence. Returns arguments of `COPY`: heads, sequences and payloads in turn.
READ_ALL: Final = Script(
    _PRELUDE
    + r"""
local found = redis.call('ZRANGEBYSCORE', heads, '-inf', ARGV[1], 'WITHSCORES')
check_thread()
local flat = {}
for index = 1, #found, 2 do
  local value = redis.call('HGET', payloads, found[index]:sub(1, 8))
  flat[#flat + 1] = found[index]
  flat[#flat + 1] = found[index + 1]
  flat[#flat + 1] = value and value:sub(9) or ''
end
return flat
""",
    idempotent=True,
    is_read=True,
)

# ARGV: member, milliseconds to live or '', then checkpoint ids, heads, sequences and payloads.
COPY: Final = Script(
    _PRELUDE
    + _WRITES
    + r"""
check_thread()
local last, highest = newest()
if last then
  return {'conflict', last, highest}
end
redis.call('ZSCORE', registry, ARGV[1])
for index = 3, #ARGV, 4 do
  put(ARGV[index + 1], ARGV[index + 2], ARGV[index + 3])
  redis.call('HSET', names, ARGV[index], ARGV[index + 2])
end
redis.call('ZADD', registry, 0, ARGV[1])
expire(ARGV[2])
return 1
"""
)

# ARGV: member, 'all' or the number of revisions, these; then heads and payloads to rebase.
DELETE: Final = Script(
    _PRELUDE
    + _WRITES
    + r"""
local function clear()
  redis.call('DEL', heads, payloads, names)
  redis.call('ZREM', registry, ARGV[1])
end

if ARGV[2] == 'all' then
  -- If a thread lost a key, the others tell how many records it had.
  local count = math.max(
    redis.call('ZCARD', heads), redis.call('HLEN', payloads), redis.call('HLEN', names))
  clear()
  return count
end
check_thread()
local removed = {}
local first_rebased = 3 + ARGV[2]
for index = 3, first_rebased - 1 do
  removed[ARGV[index]] = true
end
if cuts(removed, first_rebased, FULL) then
  return {'stale'}
end
for index = first_rebased, #ARGV, 2 do
  overwrite(ARGV[index], ARGV[index + 1])
end
local count = 0
for revision in pairs(removed) do
  local sequence = sequence_in(redis.call('HGET', payloads, revision))
  local head = sequence and head_at(sequence)
  if head then
    local readable, name = pcall(struct.unpack, '>I4c0', head, 17)
    if readable and redis.call('HGET', names, name) == sequence then
      redis.call('HDEL', names, name)
    end
    forget(sequence, head)
    count = count + 1
  end
end
if redis.call('ZCARD', heads) == 0 then
  clear()
end
return count
"""
)

# KEYS: registries. ARGV: the prefix of the keys of threads, the bounds, the most members of each
# registry. Returns for each registry whether there is more, and its members. A thread that has
# expired is deleted from it; if the server is read-only, it is only left out.
LIST_THREADS: Final = Script(
    r"""
local answers = {}
for place, registry in ipairs(KEYS) do
  local shard = registry:match('{%x%x}$')
  local found = redis.call('ZRANGEBYLEX', registry, ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
  local there = {}
  for _, member in ipairs(found) do
    local stem = ARGV[1] .. shard .. ':' .. member:sub(-32)
    -- Any key: a thread that lost a key still exists.
    if redis.call('EXISTS', stem .. ':heads', stem .. ':payloads', stem .. ':names') > 0 then
      there[#there + 1] = member
    else
      redis.pcall('ZREM', registry, member)
    end
  end
  answers[place] = {#found, found[#found] or '', there}
end
return answers
""",
    idempotent=True,
    is_read=True,
)
