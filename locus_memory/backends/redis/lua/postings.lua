-- The postings of stems in namespaces.
--
-- KEYS: bases. ARGV: now, the number of stems, the stems, then for each base a number, or nothing.
-- Returns for each base whether it has expired items, how many documents and words it has, its last
-- number, number and key of each document after the given number, the numbers of documents to leave
-- out, and the postings of each stem.

local function blocks_of(base)
  local blocks = {}
  for _, field in ipairs(redis.call('HKEYS', base .. ':m')) do
    if field:find('^b%d') then
      blocks[#blocks + 1] = ' ' .. field:sub(2)
    end
  end
  return blocks
end

local function add_merged(base, blocks, stem, parts)
  for first = 1, #blocks, CHUNK do
    local fields = {}
    for i = first, math.min(first + CHUNK - 1, #blocks) do
      fields[#fields + 1] = stem .. blocks[i]
    end
    for _, records in ipairs(redis.call('HMGET', base .. ':p', unpack(fields))) do
      parts[#parts + 1] = records or nil
    end
  end
end

local function add_waiting(space, found)
  local wanted = {}
  for stem, parts in pairs(found) do
    wanted[' ' .. stem .. '='] = parts
  end
  each_waiting(space, function(number, text)
    for mark, parts in pairs(wanted) do
      local _, stop = text:find(mark, 1, true)
      if stop then
        local first, last = pack_document(number, text)
        parts[#parts + 1] = first .. pack_count(text:match('^%d+', stop + 1)) .. last
      end
    end
  end)
end

local function keys_after(space, start)
  local found = {}
  for first = start + 1, space.number, CHUNK do
    local numbers = {}
    for number = first, math.min(first + CHUNK - 1, space.number) do
      numbers[#numbers + 1] = whole(number)
    end
    for i, key in ipairs(redis.call('HMGET', space.base .. ':d', unpack(numbers))) do
      if key then
        found[#found + 1] = numbers[i]
        found[#found + 1] = key
      end
    end
  end
  return found
end

local answer, last_stem = {}, 2 + tonumber(ARGV[2])
for place, base in ipairs(KEYS) do
  local space, blocks, found = open_space(base), blocks_of(base), {}
  check_space(space)
  for i = 3, last_stem do
    found[ARGV[i]] = {}
    add_merged(base, blocks, ARGV[i], found[ARGV[i]])
  end
  add_waiting(space, found)
  answer[#answer + 1] = redis.call('ZCOUNT', base .. ':e', '-inf', ARGV[1])
  answer[#answer + 1] = redis.call('HLEN', base .. ':d')
  answer[#answer + 1] = space.words
  answer[#answer + 1] = space.number
  answer[#answer + 1] = keys_after(space, tonumber(ARGV[last_stem + place] or space.number))
  answer[#answer + 1] = redis.call('HKEYS', base .. ':x')
  for i = 3, last_stem do
    answer[#answer + 1] = table.concat(found[ARGV[i]])
  end
end
return answer
