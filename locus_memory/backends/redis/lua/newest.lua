-- The items of namespaces, the newest write first.
--
-- KEYS: bases, 500 at most. ARGV: now, how many live items to skip, the most rows to return,
-- and for each base the first and last revision, as arguments of ZREVRANGEBYSCORE.
-- Returns for each base the revision of its first item and of the next one to read, both empty
-- if there is none; how many were skipped; the missing items (a base and a key each); and the
-- rows: a base's number, revision, key, head, value and metadata.
--
-- The next items, one of each namespace, are a heap, so a row costs no more than the logarithm of
-- the number of namespaces.

local now, skip, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
-- Read a few at once if there are few namespaces; all together not many more than wanted.
local batch = math.max(1, math.min(CHUNK, math.floor((skip + most) / #KEYS)))

local function read(source, start)
  source.place, source.found = 1, redis.call(
    'ZREVRANGEBYSCORE', KEYS[source.number] .. ':r', start, source.stop,
    'WITHSCORES', 'LIMIT', 0, batch
  )
  source.revision = tonumber(source.found[2])
end

local function advance(source)
  local before = source.revision
  source.place = source.place + 2
  source.revision = tonumber(source.found[source.place + 1])
  if not source.revision and #source.found == 2 * batch then
    read(source, '(' .. whole(before))
  end
end

local function comes_first(one, other)
  if one.revision ~= other.revision then
    return one.revision > other.revision
  end
  return one.number < other.number
end

-- Move the first of a heap, which has changed, down to its place.
local function sink(heap)
  local place, size, moving = 1, #heap, heap[1]
  while 2 * place <= size do
    local child = 2 * place
    if child < size and comes_first(heap[child + 1], heap[child]) then
      child = child + 1
    end
    if not comes_first(heap[child], moving) then
      break
    end
    heap[place] = heap[child]
    place = child
  end
  heap[place] = moving
end

local sources, heap, edges = {}, {}, {}
for i in ipairs(KEYS) do
  local source = {number = i, stop = ARGV[3 + 2 * i]}
  read(source, ARGV[2 + 2 * i])
  edges[2 * i - 1] = source.revision and whole(source.revision) or ''
  sources[i] = source
  if source.revision then
    heap[#heap + 1] = source
  elseif not are_there(KEYS[i], ':r') then
    check_space(open_space(KEYS[i]))
  end
end
-- A sorted table is a heap.
table.sort(heap, comes_first)

local rows, gone, bytes, skipped = {}, {}, 0, 0

-- Return the item of a source, or skip it; it may be missing.
local function take(source)
  local base, key, place = KEYS[source.number], source.found[source.place], #rows
  if skipped < skip then
    if is_gone(redis.call('HGET', item_key(base, key), 'h'), now) then
      return false
    end
    skipped = skipped + 1
    return true
  end
  rows[place + 1], rows[place + 2], rows[place + 3] = source.number, whole(source.revision), key
  local size = append_item(rows, base, key, now)
  if not size then
    rows[place + 1], rows[place + 2], rows[place + 3] = nil, nil, nil
    return false
  end
  bytes = bytes + size
  return true
end

for _ = 1, skip + most do
  local source = heap[1]
  if not source or bytes > MOST_BYTES then
    break
  end
  if not take(source) then
    gone[#gone + 1] = source.number
    gone[#gone + 1] = source.found[source.place]
  end
  advance(source)
  if not source.revision then
    heap[1] = heap[#heap]
    heap[#heap] = nil
  end
  if #heap > 1 then
    sink(heap)
  end
end
for i, source in ipairs(sources) do
  edges[2 * i] = source.revision and whole(source.revision) or ''
end
return {edges, skipped, gone, rows}
