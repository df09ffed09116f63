-- Puts and deletes, all or nothing.
--
-- KEYS: a base for each namespace, then the registry unless this is a cluster.
-- ARGV: now, the number of namespaces, whether they are registered, whether the server has vector
-- sets, their paths; then headers, each with its operations. A header is `<parts> <how many
-- operations> <namespace> <expected version> <expires> <version> <created> <updated>`, with - for
-- omitted fields. The last three are those of a restored item. It expires at a moment, or
-- +<seconds> from now. The parts are a letter for each argument of an operation after its key: v,
-- its value, m, its metadata unless that is {}, t, its text, c, its checksums, and e, its vector; -
-- is for a delete.
-- Returns for each put its version, for each delete 1 or 0, and then the numbers of namespaces
-- whose postings still have to be merged; or {'conflict', expected, actual, number of the
-- operation}, or {'register'} if a namespace is new and has to be registered first.
--
-- Consecutive puts of different keys are a run: their writes to an index of a namespace are one
-- command. To keep the order, all other operations run one by one.

local now_text, now, spaces_count = ARGV[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local spaces, paths = {}, {}
for i = 1, spaces_count do
  spaces[i] = open_space(KEYS[i])
  check_space(spaces[i])
  paths[i] = ARGV[4 + i]
  spaces[i].has_sets = ARGV[4] == '1'
end
local registry = KEYS[spaces_count + 1]
local is_conditional, has_put = false, false

local function read_header(text)
  local parts, count, number, expected, expires, version, created, updated =
    text:match('^(%S+) (%d+) (%d+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  if expires:sub(1, 1) == '+' then
    expires = string.format('%.6f', now + tonumber(expires:sub(2)))
  end
  is_conditional = is_conditional or expected ~= '-'
  has_put = has_put or parts ~= '-'
  return {
    space = spaces[tonumber(number)], expected = expected, expires = expires,
    is_put = parts ~= '-', metadata = parts:find('m'), text = parts:find('t'),
    vector = parts:find('e'), check = parts:find('c'), size = parts == '-' and 1 or 1 + #parts,
    restored = version ~= '-', version = version, created = created, updated = updated,
  }, tonumber(count)
end

local operations, place = {}, 5 + spaces_count
while place <= #ARGV do
  local header, count = read_header(ARGV[place])
  place = place + 1
  for _ = 1, count do
    local key = ARGV[place]
    operations[#operations + 1] =
      {header = header, key = key, name = item_key(header.space.base, key), at = place}
    place = place + header.size
  end
end

-- The metadata, the text or the vector of a put, or nil if it has none.
local function part(operation, name)
  local offset = operation.header[name]
  return offset and ARGV[operation.at + offset]
end

if has_put and not registry and ARGV[3] == '0' and spaces[1].is_new then
  return {'register'}
end

-- The version of each key by the time its operation runs.
local function find_conflict()
  local versions = {}
  for number, operation in ipairs(operations) do
    local name, expected = operation.name, operation.header.expected
    local version = versions[name]
    if not version then
      local head = redis.call('HGET', name, 'h')
      version = not is_gone(head, now) and head:match('^%d+') or '0'
    end
    if expected ~= '-' and expected ~= version then
      return {'conflict', expected, version, number}
    end
    versions[name] = operation.header.is_put and whole(tonumber(version) + 1) or '0'
  end
end

-- Write the hash of an item and return its version. This comes first: a server with full memory
-- refuses it, and once it is accepted refuses nothing else.
local function write_item(operation, head)
  local name = operation.name
  local value, metadata = ARGV[operation.at + 1], part(operation, 'metadata')
  local version, created, updated = 1, now_text, now_text
  if not is_gone(head, now) then
    local before, since, last = head:match('^(%d+) (%S+) (%S+)')
    version, created = tonumber(before or 0) + 1, since or now_text
    -- A clock that was ahead for another write is no reason to go back.
    updated = (tonumber(last) or now) > now and last or now_text
  end
  local header = operation.header
  if header.restored then
    version, created, updated = tonumber(header.version), header.created, header.updated
  end
  local new_head = table.concat(
    {whole(version), created, updated, part(operation, 'check'), operation.header.expires}, ' '
  )
  if metadata then
    redis.call('HSET', name, 'h', new_head, 'v', value, 'm', metadata)
  else
    redis.call('HSET', name, 'h', new_head, 'v', value)
    if head then
      redis.call('HDEL', name, 'm')
    end
  end
  return version
end

-- Put an item, but do not index it; returns its version, and whether it may have a card.
local function put(operation, head, revision)
  local header, space, key = operation.header, operation.header.space, operation.key
  local version = write_item(operation, head)
  if header.expires ~= '-' then
    local time = math.max(0, math.ceil((tonumber(header.expires) - now) * 1000))
    redis.call('PEXPIRE', operation.name, whole(time + SLACK))
    add(space, 'ZADD', ':e', header.expires, key)
    space.expiring = space.expiring + 1
  elseif space.expiring > 0 then
    redis.call('PERSIST', operation.name)
    redis.call('ZREM', space.base .. ':e', key)
  end
  add(space, 'ZADD', ':r', revision, key)
  space.revision = revision
  -- A key that is not in the set of keys has no card.
  -- The version of a restored item does not tell whether the key is in the set.
  return version, version > 1 and not header.restored or add(space, 'ZADD', ':k', 0, key) == 0
end

local function index_put(operation, card)
  local text, vector = part(operation, 'text') or '', part(operation, 'vector')
  index(operation.header.space, operation.key, card, text, vector)
end

local function put_one(operation, revision)
  local space, key = operation.header.space, operation.key
  local head = redis.call('HGET', operation.name, 'h')
  local version, was_known = put(operation, head, revision)
  index_put(operation, was_known and redis.call('HGET', space.base .. ':c', key))
  return version
end

local function end_of_run(first)
  local seen, last = {}, first
  repeat
    seen[operations[last].name] = true
    last = last + 1
    local following = operations[last]
  until not following or not following.header.is_put or seen[following.name]
    or last - first == CHUNK
  return last - 1
end

-- Index puts of a namespace that are a run, or a part of one.
local function index_run(space, puts)
  local keys, cards = {}, {}
  for i, operation in ipairs(puts) do
    keys[i] = operation.key
  end
  if add_waiting(space, ':k') < #puts then
    cards = redis.call('HMGET', space.base .. ':c', unpack(keys))
  end
  for i, operation in ipairs(puts) do
    index_put(operation, cards[i])
  end
  for _, index_name in ipairs({':r', ':e', ':d', ':c'}) do
    add_waiting(space, index_name)
  end
  space.waiting = nil
end

local function put_run(first, last, revision, results)
  local names, puts = {}, {}
  for i = first, last do
    names[#names + 1] = operations[i].name
  end
  local has_old = redis.call('EXISTS', unpack(names)) > 0
  for i = first, last do
    local operation = operations[i]
    local space = operation.header.space
    local head = has_old and redis.call('HGET', operation.name, 'h')
    if not space.waiting then
      space.waiting = {}
      puts[space] = {}
    end
    results[i] = put(operation, head, revision + i - first)
    table.insert(puts[space], operation)
  end
  for space, mine in pairs(puts) do
    index_run(space, mine)
  end
end

local function delete(operation)
  local head = redis.call('HGET', operation.name, 'h')
  if head then
    remove(operation.header.space, operation.key)
  end
  return is_gone(head, now) and 0 or 1
end

local conflict = is_conditional and find_conflict()
if conflict then
  return conflict
end

local time = redis.call('TIME')
local revision = tonumber(time[1]) * 1000000 + tonumber(time[2])
for _, space in ipairs(spaces) do
  revision = math.max(revision, space.revision + 1)
end

local results, i = {}, 1
while i <= #operations do
  local last = operations[i].header.is_put and end_of_run(i) or i
  if last > i then
    put_run(i, last, revision, results)
  elseif operations[i].header.is_put then
    results[i] = put_one(operations[i], revision)
  else
    results[i] = delete(operations[i])
  end
  revision = revision + last - i + 1
  i = last + 1
end
local due = {}
for i, space in ipairs(spaces) do
  sweep(space, now_text, 10)
  local _, is_unmerged = close_space(space, now_text, registry, paths[i])
  if is_unmerged then
    due[#due + 1] = i
  end
end
results[#operations + 1] = due
return results
