-- The functions that the reading scripts share.

-- The most bytes of values in a reply, so that no reply blocks the server for long.
local MOST_BYTES = 4194304

-- Append head, value and metadata of an item to `rows`, and return their size in bytes;
-- nil, without appending, if the item does not exist.
local function append_item(rows, base, key, now)
  local found = redis.call('HMGET', item_key(base, key), 'h', 'v', 'm')
  if is_gone(found[1], now) then
    return nil
  end
  rows[#rows + 1] = found[1]
  rows[#rows + 1] = found[2] or ''
  rows[#rows + 1] = found[3] or ''
  return #rows[#rows - 1] + #rows[#rows]
end
