-- ARGV: member, 'all' or the number of revisions, these; then heads and payloads to rebase.

local function clear()
  redis.call('DEL', heads, payloads, names)
  redis.call('ZREM', registry, ARGV[1])
end

if ARGV[2] == 'all' then
  -- If a thread lost a key, the others tell how many records it had.
  local count = math.max(
    redis.call('ZCARD', heads), redis.call('HLEN', payloads), redis.call('HLEN', names))
  clear()
  return count
end
check_thread()
local removed = {}
local first_rebased = 3 + ARGV[2]
for index = 3, first_rebased - 1 do
  removed[ARGV[index]] = true
end
if cuts(removed, first_rebased, FULL) then
  return {'stale'}
end
for index = first_rebased, #ARGV, 2 do
  overwrite(ARGV[index], ARGV[index + 1])
end
local count = 0
for revision in pairs(removed) do
  local sequence = sequence_in(redis.call('HGET', payloads, revision))
  local head = sequence and head_at(sequence)
  if head then
    local readable, name = pcall(struct.unpack, '>I4c0', head, 17)
    if readable and redis.call('HGET', names, name) == sequence then
      redis.call('HDEL', names, name)
    end
    forget(sequence, head)
    count = count + 1
  end
end
if redis.call('ZCARD', heads) == 0 then
  clear()
end
return count
