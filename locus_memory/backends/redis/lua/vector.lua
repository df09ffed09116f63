-- The head of an item, and its vector as float32, empty without one; nil if there is no item.
--
-- KEYS: a base. ARGV: now, a key, and whether vectors are with the items, for RediSearch.

local base, key = KEYS[1], ARGV[2]
local head = redis.call('HGET', item_key(base, key), 'h')
if is_gone(head, tonumber(ARGV[1])) then
  return nil
end
if ARGV[3] == '1' then
  for _, field in ipairs(redis.call('HKEYS', item_key(base, key))) do
    if field:sub(1, #VECTOR_FIELD) == VECTOR_FIELD then
      return {head, redis.call('HGET', item_key(base, key), field)}
    end
  end
  return {head, ''}
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
  return {head, ''}
end
local vector = redis.call('VEMB', base .. ':v' .. dimension, key, 'RAW')
if not vector then
  lose(base, ':v' .. dimension)
end
return {head, vector[2]}
