-- Puts and deletes, all or nothing.
--
-- KEYS: a base for each namespace, then the registry unless this is a cluster.
-- ARGV: now, the number of namespaces, whether they are registered, their paths; then for each
-- operation its header and its key and, for a put, value, metadata (empty for {}), text and
-- vector. A header is `p <namespace> <expected version> <expires> <milliseconds> <dimension>` or
-- `d <namespace> <expected version>`, with - for what is not given.
-- Returns for each put its version, for each delete 1 or 0; or {'conflict', expected, actual},
-- or {'register'} if a namespace is new and has to be registered first.

local now_text, now, spaces_count = ARGV[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local spaces, paths = {}, {}
for i = 1, spaces_count do
  spaces[i] = open_space(KEYS[i])
  paths[i] = ARGV[3 + i]
end
local registry = KEYS[spaces_count + 1]

local operations, place, is_conditional, has_put = {}, 4 + spaces_count, false, false
while place <= #ARGV do
  local kind, number, expected, rest = ARGV[place]:match('^(%l) (%d+) (%S+) ?(.*)$')
  local operation = {
    space = spaces[tonumber(number)], expected = expected, key = ARGV[place + 1], at = place,
  }
  is_conditional = is_conditional or expected ~= '-'
  if kind == 'p' then
    operation.expires, operation.time, operation.dimension = rest:match('^(%S+) (%S+) (%d+)$')
    has_put = true
    place = place + 6
  else
    place = place + 2
  end
  operations[#operations + 1] = operation
end

if has_put and not registry and ARGV[3] == '0' and spaces[1].is_new then
  return {'register'}
end

-- The version that each key has by the time its operation comes.
local function find_conflict()
  local versions = {}
  for _, operation in ipairs(operations) do
    local name = item_key(operation.space.base, operation.key)
    local version = versions[name]
    if not version then
      local head = redis.call('HGET', name, 'h')
      version = is_gone(head, now) and '0' or head:match('^%d+')
    end
    if operation.expected ~= '-' and operation.expected ~= version then
      return {'conflict', operation.expected, version}
    end
    versions[name] = operation.time and whole(tonumber(version) + 1) or '0'
  end
end

-- An item's hash is written first: with its memory full the server refuses that, and from
-- then on it refuses nothing.
local function put(operation, revision)
  local space, key, at = operation.space, operation.key, operation.at
  local base = space.base
  local name = item_key(base, key)
  local head = redis.call('HGET', name, 'h')
  local version, created = 1, now_text
  local is_new = is_gone(head, now)
  if not is_new then
    local before
    before, created = head:match('^(%d+) (%S+)')
    version = tonumber(before) + 1
  end
  local metadata, expires = ARGV[at + 3], operation.expires
  local new_head = whole(version) .. ' ' .. created .. ' ' .. now_text .. ' ' .. expires
  if metadata ~= '' then
    redis.call('HSET', name, 'h', new_head, 'v', ARGV[at + 2], 'm', metadata)
  else
    redis.call('HSET', name, 'h', new_head, 'v', ARGV[at + 2])
    if head then
      redis.call('HDEL', name, 'm')
    end
  end
  if expires ~= '-' then
    redis.call('PEXPIRE', name, whole(tonumber(operation.time) + SLACK))
    redis.call('ZADD', base .. ':e', expires, key)
    space.expiring = space.expiring + 1
  elseif space.expiring > 0 then
    redis.call('PERSIST', name)
    redis.call('ZREM', base .. ':e', key)
  end
  redis.call('ZADD', base .. ':r', whole(revision), key)
  -- What is not among the keys has no card.
  local was_known = not is_new or redis.call('ZADD', base .. ':k', 0, key) == 0
  local card = was_known and redis.call('HGET', base .. ':c', key)
  space.revision = revision
  index(space, key, card, ARGV[at + 4], operation.dimension, ARGV[at + 5])
  return version
end

local function delete(operation)
  local head = redis.call('HGET', item_key(operation.space.base, operation.key), 'h')
  if head then
    remove(operation.space, operation.key)
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

local results = {}
for i, operation in ipairs(operations) do
  results[i] = operation.time and put(operation, revision) or delete(operation)
  merge_if_due(operation.space)
  revision = revision + 1
end
for i, space in ipairs(spaces) do
  sweep(space, now_text, 10)
  close_space(space, now_text, registry, paths[i])
end
return results
