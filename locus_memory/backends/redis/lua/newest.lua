-- The items of namespaces, the newest write first.
--
-- KEYS: bases. ARGV: now, how many live items to skip, how many to return at most, and for each
-- base where to start: +inf, or ( and the revision of the item that was looked at last.
-- Returns whether there may be more, how many were skipped, for each base where to go on, the
-- gone (a base's number and a key for each), and the rows: a base's number, revision, key,
-- head, value and metadata.

local now, skip, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local found, starts, has_more = {}, {}, 0
for i, base in ipairs(KEYS) do
  starts[i] = ARGV[3 + i]
  local some = redis.call(
    'ZREVRANGEBYSCORE', base .. ':r', starts[i], '-inf', 'WITHSCORES', 'LIMIT', 0, skip + most
  )
  for n = 1, #some, 2 do
    found[#found + 1] = {i, tonumber(some[n + 1]), some[n]}
  end
  if #some == 2 * (skip + most) then
    has_more = 1
  end
end
if #KEYS > 1 then
  table.sort(found, function(one, other)
    if one[2] ~= other[2] then
      return one[2] > other[2]
    end
    return one[1] < other[1]
  end)
end

local rows, gone, bytes, skipped = {}, {}, 0, 0
for n, hit in ipairs(found) do
  if n > skip + most or bytes > MOST_BYTES then
    has_more = 1
    break
  end
  local i, revision, key = hit[1], whole(hit[2]), hit[3]
  starts[i] = '(' .. revision
  if skipped < skip then
    if is_gone(redis.call('HGET', item_key(KEYS[i], key), 'h'), now) then
      gone[#gone + 1] = i
      gone[#gone + 1] = key
    else
      skipped = skipped + 1
    end
  else
    local place = #rows
    rows[place + 1], rows[place + 2], rows[place + 3] = i, revision, key
    local size = append_item(rows, KEYS[i], key, now)
    if not size then
      rows[place + 1], rows[place + 2], rows[place + 3] = nil, nil, nil
      gone[#gone + 1] = i
      gone[#gone + 1] = key
    end
    bytes = bytes + (size or 0)
  end
end
return {has_more, skipped, starts, gone, rows}
