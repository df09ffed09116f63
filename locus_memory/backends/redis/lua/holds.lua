-- The namespaces that hold an item.
--
-- KEYS: bases. ARGV: now.
-- Returns for each base 1 or 0, and keys without an item, only some of them if there are
-- many.

local function holds(base, now, gone)
  -- An item without expiry never disappears without a script.
  if redis.call('ZCARD', base .. ':k') > redis.call('ZCARD', base .. ':e') then
    return 1
  end
  if not are_there(base, ':k') then
    check_space(open_space(base))
  end
  local start, keys = 0, nil
  repeat
    keys = redis.call(
      'ZREVRANGEBYSCORE', base .. ':e', '+inf', '(' .. now, 'LIMIT', start, CHUNK
    )
    for _, key in ipairs(keys) do
      if redis.call('EXISTS', item_key(base, key)) == 1 then
        return 1
      end
      if #gone < CHUNK then
        gone[#gone + 1] = key
      end
    end
    start = start + CHUNK
  until #keys < CHUNK
  return 0
end

local answer = {}
for _, base in ipairs(KEYS) do
  local gone = {}
  answer[#answer + 1] = holds(base, ARGV[1], gone)
  answer[#answer + 1] = gone
end
return answer
