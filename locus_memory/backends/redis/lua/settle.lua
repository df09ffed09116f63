-- Record the layout of the items, unless another process did first.
--
-- KEYS: the layout, the registry. ARGV: the mark it has (empty: there is no layout), its new mark,
-- and the index of the texts and that of the vectors.
-- Returns the resulting layout; nothing if there are items with words in another index.

if (redis.call('HGET', KEYS[1], 'mark') or '') == ARGV[1] then
  if ARGV[1] == '' and ARGV[3] ~= 'own' and redis.call('EXISTS', KEYS[2]) == 1 then
    return {}
  end
  redis.call('HSET', KEYS[1], 'mark', ARGV[2], 'text', ARGV[3], 'vectors', ARGV[4])
end
return redis.call('HGETALL', KEYS[1])
