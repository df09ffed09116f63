-- Record that RediSearch has indexes of vectors of these dimensions, if the layout has this mark.
--
-- KEYS: the layout. ARGV: its mark, the dimensions.
-- Returns whether it has.

if (redis.call('HGET', KEYS[1], 'mark') or '') ~= ARGV[1] then
  return 0
end
for i = 2, #ARGV do
  redis.call('HSET', KEYS[1], 'v' .. ARGV[i], '1')
end
return 1
