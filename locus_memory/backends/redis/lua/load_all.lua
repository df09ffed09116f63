-- ARGV: the highest sequence. Returns arguments of `copy`: heads, sequences and payloads in turn.

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
