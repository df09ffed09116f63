-- The values of several items.
--
-- KEYS: bases. ARGV: now, then a base's number and a key for each.
-- Returns head and value for each, both nil for missing items.

local now, values = tonumber(ARGV[1]), {}
for i = 2, #ARGV, 2 do
  local found = redis.call('HMGET', item_key(KEYS[tonumber(ARGV[i])], ARGV[i + 1]), 'h', 'v')
  local is_there = not is_gone(found[1], now)
  values[#values + 1] = is_there and found[1]
  values[#values + 1] = is_there and (found[2] or '')
end
return values
