-- Items, or keys only, of a namespace in the order of the keys.
--
-- KEYS: its base.
-- ARGV: now, ZRANGEBYLEX or ZREVRANGEBYLEX, its start and stop, the most keys, and whether to
-- return items.
-- Returns the last key read (nil: there are no more), the keys without an item, and the rows:
-- for each item key, head, value and metadata, or only the keys.

local base, now, most = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[5])
local keys = redis.call(ARGV[2], base .. ':k', ARGV[3], ARGV[4], 'LIMIT', 0, most)
if #keys == 0 and not are_there(base, ':k') then
  check_space(open_space(base))
end
local rows, gone, bytes, last = {}, {}, 0, #keys == most and keys[#keys]
for i, key in ipairs(keys) do
  if ARGV[6] == '1' then
    rows[#rows + 1] = key
    local size = append_item(rows, base, key, now)
    if not size then
      rows[#rows] = nil
      gone[#gone + 1] = key
    end
    bytes = bytes + (size or 0)
  elseif is_gone(redis.call('HGET', item_key(base, key), 'h'), now) then
    gone[#gone + 1] = key
  else
    rows[#rows + 1] = key
  end
  if bytes > MOST_BYTES and i < #keys then
    last = key
    break
  end
end
return {last, gone, rows}
