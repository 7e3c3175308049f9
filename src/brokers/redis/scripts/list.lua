-- list: jobs in the order of their times: due, or the end of those that are done or dead.
--
-- KEYS[1]  the prefix
-- ARGV     1 "1": the latest first, 2 states, a digit each (JobState), 3 queue or '', 4 not before, 5 not after this time,
--          6 time and 7 <place><id> of the job behind which to begin, or '', 8 at most so many, 9 "1": with bodies and
--          results
--
-- {time, <place><id>, the job's string, ...}, the time now, {worker names: client, number, name, ...}, 1 if there may be more

local backwards, states, only = ARGV[1] == '1', ARGV[2], ARGV[3]
local least, greatest, limit, whole = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[8]), ARGV[9] == '1'
local after_time, after = tonumber(ARGV[6]), ARGV[7]
local function shows(state) return string.find(states, state, 1, true) ~= nil end

local found, has_more = {}, false
local function comes_after(score, member)
  if after == '' then return true end
  if score ~= after_time then return (score > after_time) ~= backwards end
  return member ~= after and (member > after) ~= backwards
end

-- Adds the first `limit` of a set in our direction. Many jobs may have one time: their rank is found by halving.
local function add_from(key, from, to)
  from, to = math.max(from, least), math.min(to, greatest)
  if from > to then return end
  local command, a, b = 'ZRANGEBYSCORE', text_of(from), text_of(to)
  local skip = 0
  if after ~= '' then
    if not backwards and after_time > from then a = text_of(after_time) end
    if backwards and after_time < to then b = text_of(after_time) end
    if tonumber(a) > tonumber(b) then return end
    if (not backwards and tonumber(a) == after_time) or (backwards and tonumber(b) == after_time) then
      local same = redis.call('ZCOUNT', key, text_of(after_time), text_of(after_time))
      local low, high = 0, same
      local search = backwards and 'ZREVRANGEBYSCORE' or 'ZRANGEBYSCORE'
      while low < high do
        local middle = math.floor((low + high) / 2)
        local member = redis.call(search, key, text_of(after_time), text_of(after_time), 'LIMIT', middle, 1)[1]
        if member and comes_after(after_time, member) then high = middle else low = middle + 1 end
      end
      skip = low
    end
  end
  if backwards then command, a, b = 'ZREVRANGEBYSCORE', b, a end
  local members = redis.call(command, key, a, b, 'WITHSCORES', 'LIMIT', skip, limit)
  for i = 1, #members, 2 do found[#found + 1] = {tonumber(members[i + 1]), members[i]} end
  if #members == 2 * limit then has_more = true end
end

local function add_queue(queue)
  if shows('0') or shows('1') then
    for _, priority in ipairs(redis.call('ZRANGE', base .. 'p:' .. queue, 0, -1)) do
      add_from(lane_key(tonumber(priority), queue), shows('1') and 0 or now + 1, shows('0') and 2 ^ 52 or now)
    end
  end
  if shows('3') then add_from(base .. 'done:' .. queue, 0, 2 ^ 52) end
  if shows('4') then add_from(base .. 'dead:' .. queue, 0, 2 ^ 52) end
end
if only ~= '' then
  add_queue(only)
else
  for _, queue in ipairs(redis.call('SMEMBERS', base .. 'queues')) do add_queue(queue) end
end
if shows('2') then
  for _, id in ipairs(redis.call('ZRANGE', base .. 'leases', 0, -1)) do
    local h, front = load(id)
    local member = member_of(h[PLACE], id)
    if (only == '' or queue_of(h, front) == only) and h[DUE] >= least and h[DUE] <= greatest and comes_after(h[DUE], member) then
      found[#found + 1] = {h[DUE], member}
    end
  end
end
table.sort(found, function(a, b)
  if a[1] ~= b[1] then return (a[1] < b[1]) ~= backwards end
  return a[2] ~= b[2] and (a[2] < b[2]) ~= backwards
end)

local MOST_BYTES = 8 * 1024 * 1024
local rows, bytes, workers, named = {}, 0, {}, {}
for i = 1, math.min(limit, #found) do
  local id = id_of(found[i][2])
  local h, front = load(id)
  local job = whole and redis.call('GET', job_key(id)) or front .. load_tail(id, h, front)
  local n = #rows
  rows[n + 1], rows[n + 2], rows[n + 3] = found[i][1], found[i][2], job
  if h[STATE] == RUNNING and not named[h[CLIENT]] then
    named[h[CLIENT]] = true
    local names = redis.call('HGETALL', base .. 'x:' .. h[CLIENT])
    for w = 1, #names, 2 do
      local m = #workers
      workers[m + 1], workers[m + 2], workers[m + 3] = h[CLIENT], names[w + 1], names[w]
    end
  end
  bytes = bytes + #job + (whole and size_of_body(h, job) or 0)
  if bytes > MOST_BYTES then break end
end
return {rows, now, workers, (has_more or #found > #rows / 3) and 1 or 0}
