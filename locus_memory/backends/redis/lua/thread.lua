-- The functions that the scripts of a thread share. KEYS: its heads, its payloads, its names, and
-- the registry of its shard; see `records.py`.

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
