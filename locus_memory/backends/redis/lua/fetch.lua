-- The items of a search's hits.
--
-- KEYS: bases. ARGV: now, the number of stems, the stems, then for each item a base's number,
-- whether the name is the number of a document (1) or a key (0), and the name.
-- Returns key, head, value and metadata for each, all but the key empty for deleted items. The key
-- is empty too for a number without a document, or if there are stems and the key's text has none
-- of them. If the items are large, it returns fewer than requested.

local now, last_stem, rows, bytes = tonumber(ARGV[1]), 2 + tonumber(ARGV[2]), {}, 0

local function has_stem(base, key)
  local text = last_stem > 2 and redis.call('HGET', base .. ':c', key)
  for i = 3, last_stem do
    if text and text:find(' ' .. ARGV[i] .. '=', 1, true) then
      return true
    end
  end
  return last_stem == 2
end

for i = last_stem + 1, #ARGV, 3 do
  local base, key = KEYS[tonumber(ARGV[i])], ARGV[i + 2]
  if ARGV[i + 1] == '1' then
    key = redis.call('HGET', base .. ':d', key) or ''
  elseif not has_stem(base, key) then
    key = ''
  end
  rows[#rows + 1] = key
  local size = key ~= '' and append_item(rows, base, key, now)
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
