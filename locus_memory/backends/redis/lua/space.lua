-- The functions that the scripts of the store share.
--
-- A namespace is identified by its base, `<prefix>store:{<tag>}`. The tag keeps its keys in one
-- slot of a cluster, so a script that gets the base may derive them:
--
--   :i:<key>  an item: a hash of h, its head (version, created, updated, checksums unless an
--             earlier version wrote it, expires), v, its value, and m, its metadata unless that
--             is {}
--   :k        the keys, all of score 0 and so by the order of their bytes
--   :r        the keys by revision, which is higher for each later write
--   :e        the keys that expire, by moment
--   :c        key -> card: the vector's dimension, the document's number, and its text
--   :d        number -> key, for each document of the text index
--   :p        stem and block -> postings: number, count of the stem, length of the document
--   :x        number -> text, of deleted documents that still have postings
--   :v<n>     the vectors of n dimensions by key: a vector set, or a hash of float32 where the
--             server had no vector sets when the first of them was written
--   :m        revision, number (the last), merged (the last with postings), words (in all
--             documents), ttl (if all this expires), b<block> (documents in its postings),
--             v<n> (vectors)
--
-- A text is `<length> <stem>=<count> <stem>=<count>...`, or empty. A card outlives an item that
-- the server expired, so the remains of the item in the indexes can be found.
--
-- Postings are merged for many documents at once, which is ten times as fast as one by one, but
-- not for so many that other clients wait for long. Until then a search reads the cards of the new
-- documents, and leaves out the deleted ones.

-- The moment of the script, in each of them: that of the caller's clock, or else the server's.
if ARGV[1] == '' then
  local time = redis.call('TIME')
  ARGV[1] = string.format('%s.%06d', time[1], tonumber(time[2]))
end

-- unpack() accepts at most 8,000 values.
local CHUNK = 1000
-- How many texts are read at once; they may be long.
local TEXTS = 64
local BLOCK = 4096
local RECORD = 10
-- The most documents that wait to be merged: in a small namespace few, for a search of a tree reads
-- those of each namespace; in a large one this share of it.
local FEWEST, SHARE, WAITING = 8, 8, 512
-- The most stems of documents that a script merges.
local STEMS = 30000
-- Milliseconds that the server keeps expired items, since clocks of callers differ.
local SLACK = 60000

-- Lua prints 14 digits; a command gets all of them.
local function whole(number)
  return string.format('%.0f', number)
end

-- RediSearch, which earlier versions used, ends a name at a NUL; a key, being UTF-8, has no 255.
local function item_key(base, key)
  return base .. ':i:' .. (key:find('%z') and key:gsub('%z', '\255') or key)
end

local function is_gone(head, now)
  if not head then
    return true
  end
  -- A damaged item counts as existing: a read of it raises an error.
  local expires = head:sub(-1) ~= '-' and tonumber(head:match('^.* (.*)$') or '')
  return expires and expires <= now
end

local COUNTERS = {'revision', 'number', 'merged', 'words'}

local function open_space(base)
  local found =
    redis.call('HMGET', base .. ':m', 'revision', 'number', 'merged', 'words', 'ttl')
  return {
    base = base,
    revision = tonumber(found[1] or 0),
    number = tonumber(found[2] or 0),
    merged = tonumber(found[3] or 0),
    words = tonumber(found[4] or 0),
    timed = found[5],
    before = found,
    is_new = not found[1],
    expiring = redis.call('ZCARD', base .. ':e'),
    counts = {},
  }
end

-- Fail because a key is missing, and others prove that it had content; see `LostKeyError`.
local function lose(base, part)
  error('LOSTKEY ' .. base:match('{%x+}$') .. part)
end

local function are_there(base, ...)
  local names = {...}
  for i, part in ipairs(names) do
    names[i] = base .. part
  end
  return redis.call('EXISTS', unpack(names)) == #names
end

-- Return whether a document has postings, by the counters.
local function has_postings(base)
  for _, field in ipairs(redis.call('HKEYS', base .. ':m')) do
    if field:find('^b%d') then
      return true
    end
  end
  return false
end

-- Find which key of a namespace is missing, and fail if its content was lost.
local function look_for_loss(space)
  local base = space.base
  if space.is_new then
    if redis.call('EXISTS', base .. ':k', base .. ':r') > 0 then
      lose(base, ':m')
    end
    return
  end
  local left = redis.call('PTTL', base .. ':m')
  if left >= 0 and left <= SLACK then
    -- The whole namespace is about to expire, and has no items left.
    return
  end
  for _, part in ipairs({':k', ':r'}) do
    if not are_there(base, part) then
      lose(base, part)
    end
  end
  if space.words > 0 then
    for _, part in ipairs({':c', ':d'}) do
      if not are_there(base, part) then
        lose(base, part)
      end
    end
  end
  if not are_there(base, ':p') and has_postings(base) then
    lose(base, ':p')
  end
end

-- Fail if a key of a namespace was lost: evicted, or deleted by another client.
local function check_space(space)
  local is_whole
  if space.words > 0 and space.merged > 0 then
    is_whole = are_there(space.base, ':k', ':r', ':c', ':d', ':p')
  elseif space.words > 0 then
    is_whole = are_there(space.base, ':k', ':r', ':c', ':d')
  else
    is_whole = not space.is_new and are_there(space.base, ':k', ':r')
  end
  if not is_whole then
    look_for_loss(space)
  end
end

-- Write two arguments to a part of the indexes: the score and the member of a sorted set, or the
-- field and the value of a hash. In a run of puts they wait for one command that writes all of
-- them; else return the result of the command.
local function add(space, command, part, first, second)
  local waiting = space.waiting
  if not waiting then
    return redis.call(command, space.base .. part, first, second)
  end
  local args = waiting[part]
  if not args then
    args = {command, space.base .. part}
    waiting[part] = args
  end
  local place = #args
  args[place + 1], args[place + 2] = first, second
end

-- Write the waiting arguments of a part, and return the result of the command; 0 if none wait.
local function add_waiting(space, part)
  local args = space.waiting[part]
  space.waiting[part] = nil
  return args and redis.call(unpack(args)) or 0
end

local function count(space, name, change)
  space.counts[name] = (space.counts[name] or 0) + change
end

local function length_of(text)
  return tonumber(text:match('^%d+'))
end

local function pack_count(times)
  return struct.pack('<I2', math.min(tonumber(times), 65535))
end

local function pack_document(number, text)
  return struct.pack('<I4', number), struct.pack('<I4', length_of(text))
end

-- Return the position of a document's record in postings, from a given position on, or nil.
local function find_record(records, number, place)
  local packed = struct.pack('<I4', number)
  local start = records:find(packed, place, true)
  while start and (start - 1) % RECORD ~= 0 do
    start = records:find(packed, start + 1, true)
  end
  return start
end

-- Return postings without the records of documents. Both are sorted by number, so one pass through
-- the postings finds them all.
local function without(records, numbers)
  local kept, start = {}, 1
  table.sort(numbers)
  for _, number in ipairs(numbers) do
    local place = find_record(records, number, start)
    if place then
      kept[#kept + 1] = records:sub(start, place - 1)
      start = place + RECORD
    end
  end
  kept[#kept + 1] = records:sub(start)
  return table.concat(kept)
end

local function block_of(number)
  return whole(math.floor(number / BLOCK))
end

-- Return the plan for the postings of a block: by stem, the numbers to delete and the postings to
-- add.
local function plan_of(plans, number)
  local block = block_of(number)
  plans.blocks[block] = plans.blocks[block] or {dead = {}, added = {}}
  return plans.blocks[block]
end

local function plan_to_remove(plans, number, text)
  local dead = plan_of(plans, number).dead
  for stem in text:gmatch(' ([^ =]+)=') do
    dead[stem] = dead[stem] or {}
    table.insert(dead[stem], number)
    plans.stems = plans.stems + 1
  end
end

local function plan_to_add(plans, number, text)
  local added, counts = plan_of(plans, number).added, plans.counts
  local first, last = pack_document(number, text)
  for stem, times in text:gmatch(' ([^ =]+)=(%d+)') do
    local postings = added[stem]
    if not postings then
      postings = {}
      added[stem] = postings
    end
    local packed = counts[times]
    if not packed then
      packed = pack_count(times)
      counts[times] = packed
    end
    postings[#postings + 1] = first .. packed .. last
    plans.stems = plans.stems + 1
  end
end

local function change_postings(name, block, stems, plan)
  local fields, kept, emptied = {}, {}, {}
  for i, stem in ipairs(stems) do
    fields[i] = stem .. ' ' .. block
  end
  for i, postings in ipairs(redis.call('HMGET', name, unpack(fields))) do
    postings = postings or ''
    if plan.dead[stems[i]] then
      postings = without(postings, plan.dead[stems[i]])
    end
    postings = postings .. table.concat(plan.added[stems[i]] or {})
    if postings == '' then
      emptied[#emptied + 1] = fields[i]
    else
      kept[#kept + 1] = fields[i]
      kept[#kept + 1] = postings
    end
  end
  if #kept > 0 then
    redis.call('HSET', name, unpack(kept))
  end
  if #emptied > 0 then
    redis.call('HDEL', name, unpack(emptied))
  end
end

local function carry_out(plans, name)
  for block, plan in pairs(plans.blocks) do
    local stems = {}
    for stem in pairs(plan.added) do
      stems[#stems + 1] = stem
    end
    for stem in pairs(plan.dead) do
      if not plan.added[stem] then
        stems[#stems + 1] = stem
      end
    end
    for first = 1, #stems, CHUNK do
      local last = math.min(first + CHUNK - 1, #stems)
      change_postings(name, block, {unpack(stems, first, last)}, plan)
    end
  end
end

-- Call `visit` with the number and the text of each document that waits for its postings, in
-- order, until it returns true.
local function each_waiting(space, visit)
  for first = space.merged + 1, space.number, TEXTS do
    local numbers, owned, keys = {}, {}, {}
    for number = first, math.min(first + TEXTS - 1, space.number) do
      numbers[#numbers + 1] = whole(number)
    end
    for i, key in ipairs(redis.call('HMGET', space.base .. ':d', unpack(numbers))) do
      if key then
        keys[#keys + 1] = key
        owned[#owned + 1] = first + i - 1
      end
    end
    if #keys > 0 then
      for i, card in ipairs(redis.call('HMGET', space.base .. ':c', unpack(keys))) do
        if visit(owned[i], card and card:match('^%d+ %d+ (.*)$') or '0') then
          return
        end
      end
    end
  end
end

-- Plan to delete missing documents from the postings; returns their numbers.
local function plan_the_dead(space, plans)
  local numbers, planned = redis.call('HKEYS', space.base .. ':x'), {}
  for first = 1, #numbers, TEXTS do
    local some = {unpack(numbers, first, math.min(first + TEXTS - 1, #numbers))}
    for i, text in ipairs(redis.call('HMGET', space.base .. ':x', unpack(some))) do
      if plans.stems >= STEMS then
        return planned
      end
      local number = tonumber(some[i])
      plan_to_remove(plans, number, text)
      count(space, 'b' .. block_of(number), -1)
      planned[#planned + 1] = some[i]
    end
  end
  return planned
end

-- Plan to add the waiting documents to the postings; returns the number of the last one.
local function plan_the_new(space, plans)
  local last = space.number
  each_waiting(space, function(number, text)
    if plans.stems >= STEMS then
      last = number - 1
      return true
    end
    plan_to_add(plans, number, text)
    count(space, 'b' .. block_of(number), 1)
  end)
  return last
end

local function merge(space)
  local base, plans = space.base, {blocks = {}, counts = {}, stems = 0}
  local dead, last = plan_the_dead(space, plans), space.merged
  if plans.stems < STEMS then
    last = plan_the_new(space, plans)
  end
  -- This comes first: a server with full memory allows it, and then the rest of the script.
  redis.call('HDEL', base .. ':x', '')
  for first = 1, #dead, CHUNK do
    redis.call('HDEL', base .. ':x', unpack(dead, first, math.min(first + CHUNK - 1, #dead)))
  end
  carry_out(plans, base .. ':p')
  space.merged = last
end

local function is_due(space)
  local most = math.min(WAITING, math.max(FEWEST, space.merged / SHARE))
  return space.number - space.merged >= most
    or (space.has_dead and redis.call('HLEN', space.base .. ':x') >= most)
end

local function add_text(space, key, text)
  space.number = space.number + 1
  space.words = space.words + length_of(text)
  local number = whole(space.number)
  add(space, 'HSET', ':d', number, key)
  return number
end

local function remove_text(space, number, text)
  redis.call('HDEL', space.base .. ':d', number)
  space.words = space.words - length_of(text)
  if tonumber(number) <= space.merged then
    redis.call('HSET', space.base .. ':x', number, text)
    space.has_dead = true
  end
end

-- Return whether the vectors of a dimension are in a hash; a new one is, without vector sets.
local function is_hash(base, dimension, has_sets)
  local kind = redis.call('TYPE', base .. ':v' .. dimension).ok
  return kind == 'hash' or (kind == 'none' and not has_sets)
end

local function set_vector(space, key, old, dimension, vector)
  local base = space.base
  if old ~= '0' and old ~= dimension then
    redis.call(is_hash(base, old, false) and 'HDEL' or 'VREM', base .. ':v' .. old, key)
    count(space, 'v' .. old, -1)
  end
  if dimension ~= '0' then
    local name = base .. ':v' .. dimension
    if is_hash(base, dimension, space.has_sets) then
      redis.call('HSET', name, key, vector)
    else
      redis.call('VADD', name, 'FP32', vector, key, 'NOQUANT', 'EF', '200', 'M', '16')
    end
    if old ~= dimension then
      count(space, 'v' .. dimension, 1)
    end
  end
end

-- Make the indexes hold exactly this text and this vector of a key.
local function index(space, key, card, text, vector)
  local cards = space.base .. ':c'
  local dimension = vector and whole(#vector / 4) or '0'
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
    add(space, 'HSET', ':c', key, new)
  end
end

local function remove(space, key)
  local base = space.base
  redis.call('DEL', item_key(base, key))
  redis.call('ZREM', base .. ':k', key)
  redis.call('ZREM', base .. ':r', key)
  redis.call('ZREM', base .. ':e', key)
  index(space, key, redis.call('HGET', base .. ':c', key), '')
end

-- Delete expired items, up to a number.
local function sweep(space, now, most)
  if space.expiring == 0 then
    return
  end
  local expired =
    redis.call('ZRANGEBYSCORE', space.base .. ':e', '-inf', now, 'LIMIT', 0, most)
  for _, key in ipairs(expired) do
    remove(space, key)
  end
end

local function index_names(base)
  local names = {}
  for _, part in ipairs({'k', 'r', 'e', 'c', 'd', 'p', 'x', 'm'}) do
    names[#names + 1] = base .. ':' .. part
  end
  for _, field in ipairs(redis.call('HKEYS', base .. ':m')) do
    if field:find('^v%d') then
      names[#names + 1] = base .. ':' .. field
    end
  end
  return names
end

-- Set the expiry of the indexes to that of the last item, or to never if an item has none.
local function set_time(space, now, left)
  local base = space.base
  if space.expiring == 0 or redis.call('ZCARD', base .. ':e') < left then
    if space.timed then
      redis.call('HDEL', base .. ':m', 'ttl')
      for _, name in ipairs(index_names(base)) do
        redis.call('PERSIST', name)
      end
    end
    return
  end
  if not space.timed then
    redis.call('HSET', base .. ':m', 'ttl', '1')
  end
  local last = redis.call('ZREVRANGE', base .. ':e', 0, 0, 'WITHSCORES')[2]
  local time = whole(math.max(0, tonumber(last) - tonumber(now)) * 1000 + 2 * SLACK)
  for _, name in ipairs(index_names(base)) do
    redis.call('PEXPIRE', name, time)
  end
end

-- Write the changed counters. A server with full memory refuses even a write that changes nothing.
local function write_counters(space)
  local name = space.base .. ':m'
  local args = {'HSET', name}
  for i, counter in ipairs(COUNTERS) do
    if tonumber(space.before[i] or -1) ~= space[counter] then
      args[#args + 1], args[#args + 2] = counter, space[counter]
    end
  end
  if #args > 2 then
    redis.call(unpack(args))
  end
  for field, change in pairs(space.counts) do
    if change ~= 0 and redis.call('HINCRBY', name, field, change) == 0 then
      redis.call('HDEL', name, field)
    end
  end
end

-- Write the changes of a namespace; returns how many keys it has, and whether there is more to
-- merge. `registry` is nil on a cluster, where it is in another slot.
local function close_space(space, now, registry, path)
  local base = space.base
  local left = redis.call('ZCARD', base .. ':k')
  if left == 0 then
    redis.call('DEL', unpack(index_names(base)))
    if registry then
      redis.call('ZREM', registry, path)
    end
    return 0, false
  end
  local is_unmerged = is_due(space)
  if is_unmerged then
    merge(space)
    is_unmerged = is_due(space)
  end
  write_counters(space)
  set_time(space, now, left)
  if space.is_new and registry then
    redis.call('ZADD', registry, 0, path)
  end
  return left, is_unmerged
end
