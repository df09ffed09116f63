-- The functions that the writing scripts of a thread share.

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
