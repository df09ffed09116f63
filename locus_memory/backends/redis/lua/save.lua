-- ARGV: member, milliseconds to live or '', checkpoint id, the condition on the parent ('any',
-- 'none' or 'is'), the parent's checkpoint id, head, payload; then heads and payloads to rebase.
-- An equal record that exists already was written by this very call, whose reply was lost.

local name, head, payload = ARGV[3], ARGV[6], ARGV[7]
local revision, base = head:sub(1, 8), head:sub(9, 16)

-- The reply if the record cannot be appended as it is.
local function refuse(answer)
  local sequence = sequence_in(redis.call('HGET', payloads, revision))
  if sequence and head_at(sequence) == head then
    return tonumber(sequence)
  end
  return answer
end

check_thread()
local last, highest = newest()
if ARGV[4] ~= 'any' then
  local known = ARGV[4] == 'is' and redis.call('HGET', names, ARGV[5])
  if (last and known ~= highest) or (ARGV[4] == 'is' and not last) then
    return refuse({'conflict', last or '', highest or ''})
  end
end
local sequence = string.format('%.0f', (tonumber(highest) or 0) + 1)
local replaced = redis.call('HGET', names, name)
local before = replaced and head_at(replaced)
if before or #ARGV > 7 then
  if cuts(before and {[before:sub(1, 8)] = true} or {}, 8, base) then
    return refuse({'stale'})
  end
elseif base ~= FULL and redis.call('HEXISTS', payloads, base) == 0 then
  return {'stale'}
end
if not last then
  redis.call('ZADD', registry, 0, ARGV[1])
end
if redis.call('HSETNX', payloads, revision, struct.pack('>d', sequence) .. payload) == 0 then
  return refuse({'stale'})
end
redis.call('ZADD', heads, sequence, head)
redis.call('HSET', names, name, sequence)
for index = 8, #ARGV, 2 do
  overwrite(ARGV[index], ARGV[index + 1])
end
if before then
  forget(replaced, before)
end
expire(ARGV[2])
return tonumber(sequence)
