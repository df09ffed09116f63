-- Delete a namespace of a cluster from the registry, if it still has the given mark.
--
-- KEYS: the registry, the marks. ARGV: its path, its mark (empty: none).

if (redis.call('HGET', KEYS[2], ARGV[1]) or '') ~= ARGV[2] then
  return 0
end
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[1], ARGV[1])
