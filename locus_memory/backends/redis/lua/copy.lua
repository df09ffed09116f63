-- ARGV: member, milliseconds to live or '', then checkpoint ids, heads, sequences and payloads.

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
