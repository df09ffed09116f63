-- KEYS: registries. ARGV: the prefix of the keys of threads, the bounds, the most members of each
-- registry. Returns for each registry whether there is more, and its members. A thread that has
-- expired is deleted from it; if the server is read-only, it is only left out.

local answers = {}
for place, registry in ipairs(KEYS) do
  local shard = registry:match('{%x%x}$')
  local found = redis.call('ZRANGEBYLEX', registry, ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
  local there = {}
  for _, member in ipairs(found) do
    local stem = ARGV[1] .. shard .. ':' .. member:sub(-32)
    -- Any key: a thread that lost a key still exists.
    if redis.call('EXISTS', stem .. ':heads', stem .. ':payloads', stem .. ':names') > 0 then
      there[#there + 1] = member
    else
      redis.pcall('ZREM', registry, member)
    end
  end
  answers[place] = {#found, found[#found] or '', there}
end
return answers
