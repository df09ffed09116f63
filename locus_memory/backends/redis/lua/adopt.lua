-- Move what an earlier version kept for RediSearch, with the items, into the own indexes.
--
-- KEYS: a base, the registry. ARGV: now, its path, whether the server has vector sets; then for
-- each item its key, its head, its text (empty: it has none there), and its vector (empty: none).
-- An item whose head is another by now is left as it is. Returns how many were moved.

local now, path, moved = ARGV[1], ARGV[2], 0
local space = open_space(KEYS[1])
check_space(space)
space.has_sets = ARGV[3] == '1'
for i = 4, #ARGV, 4 do
  local key, name = ARGV[i], item_key(space.base, ARGV[i])
  if redis.call('HGET', name, 'h') == ARGV[i + 1] then
    local card = redis.call('HGET', space.base .. ':c', key)
    local text = ARGV[i + 2]
    if text == '' and card then
      text = card:match('^%d+ %d+ (.*)$')
    end
    index(space, key, card, text, ARGV[i + 3] ~= '' and ARGV[i + 3] or nil)
    for _, field in ipairs(redis.call('HKEYS', name)) do
      if field:byte() == 255 then
        redis.call('HDEL', name, field)
      end
    end
    moved = moved + 1
  end
end
close_space(space, now, KEYS[2], path)
return moved
