-- The head of an item, and its vector as float32, empty without one; nil if there is no item.
--
-- KEYS: a base. ARGV: now, a key. The third answer is whether the vector is exactly as it was
-- written, which one of a vector set is not.

local base, key = KEYS[1], ARGV[2]
local head = redis.call('HGET', item_key(base, key), 'h')
if is_gone(head, tonumber(ARGV[1])) then
  return nil
end
local card = redis.call('HGET', base .. ':c', key)
if not card and not are_there(base, ':c') then
  for _, field in ipairs(redis.call('HKEYS', base .. ':m')) do
    if field:find('^v%d') then
      lose(base, ':c')
    end
  end
end
local dimension = card and card:match('^%d+') or '0'
if dimension == '0' then
  return {head, '', 1}
end
local name, vector = base .. ':v' .. dimension, nil
local in_hash = is_hash(base, dimension, false)
if in_hash then
  vector = redis.call('HGET', name, key)
else
  local raw = redis.call('VEMB', name, key, 'RAW')
  vector = raw and raw[2]
end
if not vector then
  lose(base, ':v' .. dimension)
end
return {head, vector, in_hash and 1 or 0}
