-- Delete expired items of a namespace, and index data of items that the server expired.
--
-- KEYS: its base, then the registry unless this is a cluster.
-- ARGV: now, its path, the most items, whether to delete missing documents from the postings, then
-- keys that may have no item.
-- Returns how many keys are left, how many of these have expired, and 1 if there is more to merge.

local now = ARGV[1]
local space = open_space(KEYS[1])
check_space(space)
for i = 5, #ARGV do
  if is_gone(redis.call('HGET', item_key(space.base, ARGV[i]), 'h'), tonumber(now)) then
    remove(space, ARGV[i])
  end
end
sweep(space, now, ARGV[3])
local is_thorough = ARGV[4] == '1'
if is_thorough and redis.call('EXISTS', space.base .. ':x') == 1 then
  merge(space)
end
space.has_dead = true
local left, is_unmerged = close_space(space, now, KEYS[2], ARGV[2])
if is_thorough then
  is_unmerged = redis.call('EXISTS', space.base .. ':x') == 1
end
return {left, redis.call('ZCOUNT', space.base .. ':e', '-inf', now), is_unmerged and 1 or 0}
