-- ARGV: the highest sequence, the most rows. Returns rows as `load` does for 'head'.

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
