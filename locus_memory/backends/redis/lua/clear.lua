-- Delete the items of a namespace, up to a number. The indexes of text and vectors are deleted
-- first and as a whole: deleting each item from them would be far slower.
--
-- KEYS: its base, then the registry unless this is a cluster.
-- ARGV: now, its path, the most items.
-- A lost key is first created again from the others.
-- Returns how many unexpired items were deleted, and how many keys are left.

local now, most = ARGV[1], tonumber(ARGV[3])
local space = open_space(KEYS[1])
local base = space.base

if not are_there(base, ':k') and are_there(base, ':r') then
  redis.call('ZUNIONSTORE', base .. ':k', 1, base .. ':r', 'WEIGHTS', 0)
end
if space.is_new and are_there(base, ':c') then
  for _, card in ipairs(redis.call('HVALS', base .. ':c')) do
    redis.call('HSET', base .. ':m', 'v' .. card:match('^%d+'), 1)
  end
end
if not space.is_new and not are_there(base, ':k') then
  check_space(space)
end

if redis.call('EXISTS', base .. ':c') == 1 then
  for _, name in ipairs(index_names(base)) do
    if name:find(':[cdpx]$') or name:find(':v%d+$') then
      redis.call('UNLINK', name)
    end
  end
  for _, field in ipairs(redis.call('HKEYS', base .. ':m')) do
    if field:find('^[bv]%d') then
      redis.call('HDEL', base .. ':m', field)
    end
  end
  space.words, space.merged = 0, space.number
end

local function drop(keys)
  local deleted = 0
  for first = 1, #keys, CHUNK do
    local some, names = {}, {}
    for i = first, math.min(first + CHUNK - 1, #keys) do
      some[#some + 1] = keys[i]
      names[#names + 1] = item_key(base, keys[i])
    end
    deleted = deleted + redis.call('UNLINK', unpack(names))
    for _, part in ipairs({':k', ':r', ':e'}) do
      redis.call('ZREM', base .. part, unpack(some))
    end
  end
  return deleted
end

local expired = redis.call('ZRANGEBYSCORE', base .. ':e', '-inf', now, 'LIMIT', 0, most)
drop(expired)
local deleted = 0
if #expired < most then
  deleted = drop(redis.call('ZRANGE', base .. ':k', 0, most - #expired - 1))
end
local left = close_space(space, now, KEYS[2], ARGV[2])
return {deleted, left}
