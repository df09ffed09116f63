-- The values of several items.
--
-- KEYS: bases. ARGV: now, then a base's number and a key for each.
-- Returns a value or nil for each.

local now, values = tonumber(ARGV[1]), {}
for i = 2, #ARGV, 2 do
  local found = redis.call('HMGET', item_key(KEYS[tonumber(ARGV[i])], ARGV[i + 1]), 'h', 'v')
  values[#values + 1] = not is_gone(found[1], now) and found[2]
end
return values
