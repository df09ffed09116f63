-- The vectors of namespaces that are nearest to a given one.
--
-- KEYS: bases. ARGV: now, the dimension, the vector, the most hits of each namespace, the effort of
-- the graph, and the most vectors for an exact comparison.
-- Returns for each base whether it has expired items, how many vectors of the dimension it has,
-- another dimension of its vectors (or 0), and the keys with their scores; or, if the vectors are
-- in a hash, an empty text.

local dimension, exact = ARGV[2], tonumber(ARGV[6])

local function similar(base, most, ...)
  local name = base .. ':v' .. dimension
  return redis.call('VSIM', name, 'FP32', ARGV[3], 'WITHSCORES', 'COUNT', whole(most), ...)
end

local function nearest(base, size)
  local most = math.min(tonumber(ARGV[4]), size)
  if most == 0 then
    return {}
  end
  local kind = redis.call('TYPE', base .. ':v' .. dimension).ok
  if kind == 'none' then
    lose(base, ':v' .. dimension)
  elseif kind == 'hash' then
    return ''
  end
  -- For many hits, the graph is slower than a comparison with all vectors.
  if size > exact and most < size / 4 then
    local found = similar(base, most, 'EF', ARGV[5])
    -- The graph may have parts that no path leads to.
    if #found == 2 * most then
      return found
    end
  end
  local found = similar(base, most, 'TRUTH')
  if #found < 2 * most then
    lose(base, ':v' .. dimension)
  end
  return found
end

local answer = {}
for _, base in ipairs(KEYS) do
  local size, other = 0, 0
  local fields = redis.call('HKEYS', base .. ':m')
  if #fields == 0 then
    check_space(open_space(base))
  end
  for _, field in ipairs(fields) do
    if field == 'v' .. dimension then
      size = tonumber(redis.call('HGET', base .. ':m', field))
    elseif field:find('^v%d') then
      other = tonumber(field:sub(2))
    end
  end
  answer[#answer + 1] = redis.call('ZCOUNT', base .. ':e', '-inf', ARGV[1])
  answer[#answer + 1] = size
  answer[#answer + 1] = other
  answer[#answer + 1] = nearest(base, size)
end
return answer
