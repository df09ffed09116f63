-- The items that a search found.
--
-- KEYS: bases. ARGV: now, whether the names are numbers of documents, then a base's number and a
-- name for each.
-- Returns key, head, value and metadata for each, all but the key empty for what is gone; for
-- fewer than asked for if they are large.

local now, by_number, rows, bytes = tonumber(ARGV[1]), ARGV[2] == '1', {}, 0
for i = 3, #ARGV, 2 do
  local base, key = KEYS[tonumber(ARGV[i])], ARGV[i + 1]
  if by_number then
    key = redis.call('HGET', base .. ':d', key) or ''
  end
  rows[#rows + 1] = key
  local size = append_item(rows, base, key, now)
  if not size then
    for _ = 1, 3 do
      rows[#rows + 1] = ''
    end
  end
  bytes = bytes + (size or 0)
  if bytes > MOST_BYTES then
    break
  end
end
return rows
