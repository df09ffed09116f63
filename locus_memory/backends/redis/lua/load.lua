-- ARGV: 'newest' or 'named', a checkpoint id, and 'head', 'record' or 'chain'. Returns rows of
-- head, sequence, and payload or its length; the requested checkpoint is first.

local head, sequence
if ARGV[1] == 'named' then
  sequence = redis.call('HGET', names, ARGV[2])
  if not sequence then
    check_thread()
    return {}
  end
  head = head_at(sequence)
  if not head then
    return {{''}}
  end
else
  head, sequence = newest()
  if not head then
    check_thread()
    return {}
  end
end
if ARGV[3] == 'head' then
  return {{head, sequence, redis.call('HSTRLEN', payloads, head:sub(1, 8))}}
end
local value = redis.call('HGET', payloads, head:sub(1, 8))
local rows, seen = {}, {}
while head do
  local base = head:sub(9, 16)
  rows[#rows + 1] = {head, sequence, value}
  seen[head:sub(1, 8)] = true
  if ARGV[3] == 'record' or base == FULL or seen[base] then
    break
  end
  value = redis.call('HGET', payloads, base)
  sequence = sequence_in(value)
  head = sequence and head_at(sequence)
end
return rows
