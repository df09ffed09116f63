-- What the scripts that read share.

-- Bytes of values after which an answer ends, so that no answer holds up the server for long.
local MOST_BYTES = 4194304

-- Append head, value and metadata of an item to `rows`, and return how many bytes they have;
-- nil, and nothing is appended, if it is gone.
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
