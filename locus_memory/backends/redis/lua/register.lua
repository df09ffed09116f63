-- Register a namespace of a cluster.
--
-- KEYS: the registry, the marks. ARGV: its path, its new mark.

redis.call('ZADD', KEYS[1], 0, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 1
