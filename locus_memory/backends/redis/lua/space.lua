-- What the scripts of the store share.
--
-- A namespace is known by its base, `<prefix>store:{<tag>}`. The tag keeps its keys in one slot
-- of a cluster, so a script that is given the base may derive them:
--
--   :i:<key>  an item: a hash of h, its head (version, created, updated, expires), v, its
--             value, and m, its metadata unless that is {}
--   :k        the keys, all of score 0 and so by the order of their bytes
--   :r        the keys by revision, which is higher for each later write
--   :e        the keys that expire, by moment
--   :c        key -> card: the vector's dimension, the document's number, and its text
--   :d        number -> key, for each document of the text index
--   :p        stem and block -> postings: number, count of the stem, length of the document
--   :v<n>     a vector set of n dimensions
--   :m        revision, number (the last), words (in all documents), ttl (if all this expires),
--             b<block> (documents in it), v<n> (vectors)
--
-- A text is `<length> <stem> <count> <stem> <count>...`, or empty. A card outlives an item that
-- the server expired, so that what is left of it in the indexes can be found.

-- unpack() takes no more than 8,000.
local CHUNK = 1000
local BLOCK = 1024
local RECORD = 10
-- Milliseconds that the server keeps what has expired, for clocks differ.
local SLACK = 60000

local function whole(number)
  return string.format('%.0f', number)
end

local function item_key(base, key)
  return base .. ':i:' .. key
end

local function is_gone(head, now)
  if not head then
    return true
  end
  local moment = tonumber(head:match('%S+$'))
  return moment ~= nil and moment <= now
end

local function open_space(base)
  local found = redis.call('HMGET', base .. ':m', 'revision', 'number', 'words', 'ttl')
  return {
    base = base,
    revision = tonumber(found[1] or 0),
    number = tonumber(found[2] or 0),
    words = tonumber(found[3] or 0),
    timed = found[4],
    is_new = not found[1],
    counts = {},
  }
end

local function count(space, name, change)
  space.counts[name] = (space.counts[name] or 0) + change
end

local function without(records, record)
  local number = record:sub(1, 4)
  local start = records:find(number, 1, true)
  while start and (start - 1) % RECORD ~= 0 do
    start = records:find(number, start + 1, true)
  end
  if not start then
    return records
  end
  return records:sub(1, start - 1) .. records:sub(start + RECORD)
end

local function with(records, record)
  return records .. record
end

-- Change the postings of every stem of a document.
local function edit_postings(space, number, text, edit)
  local name = space.base .. ':p'
  local block = ' ' .. math.floor(number / BLOCK)
  local length = tonumber(text:match('^%d+'))
  local fields, records = {}, {}
  for stem, times in text:gmatch(' (%S+) (%d+)') do
    fields[#fields + 1] = stem .. block
    records[#records + 1] =
      struct.pack('<I4I2I4', number, math.min(tonumber(times), 65535), length)
  end
  for first = 1, #fields, CHUNK do
    local last = math.min(first + CHUNK - 1, #fields)
    local changed, emptied = {}, {}
    for i, old in ipairs(redis.call('HMGET', name, unpack(fields, first, last))) do
      local place = first + i - 1
      local new = edit(old or '', records[place])
      if new == '' then
        emptied[#emptied + 1] = fields[place]
      else
        changed[#changed + 1] = fields[place]
        changed[#changed + 1] = new
      end
    end
    if #changed > 0 then
      redis.call('HSET', name, unpack(changed))
    end
    if #emptied > 0 then
      redis.call('HDEL', name, unpack(emptied))
    end
  end
  return length
end

local function add_text(space, key, text)
  local number = space.number + 1
  space.number = number
  redis.call('HSET', space.base .. ':d', whole(number), key)
  space.words = space.words + edit_postings(space, number, text, with)
  count(space, 'b' .. math.floor(number / BLOCK), 1)
  return whole(number)
end

local function remove_text(space, number, text)
  redis.call('HDEL', space.base .. ':d', number)
  number = tonumber(number)
  space.words = space.words - edit_postings(space, number, text, without)
  count(space, 'b' .. math.floor(number / BLOCK), -1)
end

local function set_vector(space, key, old, dimension, vector)
  if old ~= '0' and old ~= dimension then
    redis.call('VREM', space.base .. ':v' .. old, key)
    count(space, 'v' .. old, -1)
  end
  if dimension ~= '0' then
    local name = space.base .. ':v' .. dimension
    redis.call('VADD', name, 'FP32', vector, key, 'NOQUANT', 'EF', '200', 'M', '16')
    if old ~= dimension then
      count(space, 'v' .. dimension, 1)
    end
  end
end

-- Make the indexes hold this text and this vector of a key, and nothing else.
local function index(space, key, text, dimension, vector)
  local cards = space.base .. ':c'
  local card = redis.call('HGET', cards, key)
  local old_dimension, number, old_text = '0', '0', ''
  if card then
    old_dimension, number, old_text = card:match('^(%d+) (%d+) (.*)$')
  end
  set_vector(space, key, old_dimension, dimension, vector)
  if text ~= old_text then
    if old_text ~= '' then
      remove_text(space, number, old_text)
      number = '0'
    end
    if text ~= '' then
      number = add_text(space, key, text)
    end
  end
  if dimension == '0' and text == '' then
    if card then
      redis.call('HDEL', cards, key)
    end
    return
  end
  local new = dimension .. ' ' .. number .. ' ' .. text
  if new ~= card then
    redis.call('HSET', cards, key, new)
  end
end

local function remove(space, key)
  local base = space.base
  redis.call('DEL', item_key(base, key))
  redis.call('ZREM', base .. ':k', key)
  redis.call('ZREM', base .. ':r', key)
  redis.call('ZREM', base .. ':e', key)
  index(space, key, '', '0')
end

-- Remove what has expired, up to so many items.
local function sweep(space, now, most)
  local expired =
    redis.call('ZRANGEBYSCORE', space.base .. ':e', '-inf', now, 'LIMIT', 0, most)
  for _, key in ipairs(expired) do
    remove(space, key)
  end
end

local function index_names(base)
  local names = {}
  for _, part in ipairs({'k', 'r', 'e', 'c', 'd', 'p', 'm'}) do
    names[#names + 1] = base .. ':' .. part
  end
  for _, field in ipairs(redis.call('HKEYS', base .. ':m')) do
    if field:find('^v%d') then
      names[#names + 1] = base .. ':' .. field
    end
  end
  return names
end

-- Let the indexes expire with the last item, or never if an item stays.
local function set_time(space, now, left)
  local base = space.base
  if redis.call('ZCARD', base .. ':e') < left then
    if space.timed then
      redis.call('HDEL', base .. ':m', 'ttl')
      for _, name in ipairs(index_names(base)) do
        redis.call('PERSIST', name)
      end
    end
    return
  end
  redis.call('HSET', base .. ':m', 'ttl', '1')
  local last = redis.call('ZREVRANGE', base .. ':e', 0, 0, 'WITHSCORES')[2]
  local time = whole(math.max(0, tonumber(last) - tonumber(now)) * 1000 + 2 * SLACK)
  for _, name in ipairs(index_names(base)) do
    redis.call('PEXPIRE', name, time)
  end
end

-- Write what changed of a namespace; returns how many keys it has. `registry` is nil on a
-- cluster, where it is in another slot.
local function close_space(space, now, registry, path)
  local base = space.base
  local left = redis.call('ZCARD', base .. ':k')
  if left == 0 then
    redis.call('DEL', unpack(index_names(base)))
    if registry then
      redis.call('ZREM', registry, path)
    end
    return 0
  end
  local revision, number, words = whole(space.revision), whole(space.number), whole(space.words)
  redis.call('HSET', base .. ':m', 'revision', revision, 'number', number, 'words', words)
  for name, change in pairs(space.counts) do
    if redis.call('HINCRBY', base .. ':m', name, change) == 0 then
      redis.call('HDEL', base .. ':m', name)
    end
  end
  set_time(space, now, left)
  if space.is_new and registry then
    redis.call('ZADD', registry, 0, path)
  end
  return left
end
