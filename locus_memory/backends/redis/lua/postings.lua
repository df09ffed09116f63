-- The postings of stems in namespaces.
--
-- KEYS: bases. ARGV: now, then the stems.
-- Returns for each base whether something in it has expired, how many documents and words it
-- has, and the postings of each stem.

local answer = {}
for _, base in ipairs(KEYS) do
  local blocks, words = {}, 0
  local meta = redis.call('HGETALL', base .. ':m')
  for i = 1, #meta, 2 do
    if meta[i] == 'words' then
      words = meta[i + 1]
    elseif meta[i]:find('^b%d') then
      blocks[#blocks + 1] = ' ' .. meta[i]:sub(2)
    end
  end
  answer[#answer + 1] = redis.call('ZCOUNT', base .. ':e', '-inf', ARGV[1])
  answer[#answer + 1] = redis.call('HLEN', base .. ':d')
  answer[#answer + 1] = words
  for n = 2, #ARGV do
    local parts = {}
    for first = 1, #blocks, CHUNK do
      local fields = {}
      for i = first, math.min(first + CHUNK - 1, #blocks) do
        fields[#fields + 1] = ARGV[n] .. blocks[i]
      end
      for _, records in ipairs(redis.call('HMGET', base .. ':p', unpack(fields))) do
        parts[#parts + 1] = records or nil
      end
    end
    answer[#answer + 1] = table.concat(parts)
  end
end
return answer
