-- queues: what every queue holds.
--
-- KEYS[1]  the prefix
--
-- {name, "1": paused, scheduled, ready, running, dead, done, due time of the longest waiting ready job or -1,
-- subscriptions, ...}, {counters: name, value, ...}, leases

local names, known = {}, {}
local function add(name)
  if not known[name] then
    known[name] = {workers = 0}
    names[#names + 1] = name
  end
end
for _, name in ipairs(redis.call('SMEMBERS', base .. 'queues')) do add(name) end
for _, name in ipairs(redis.call('SMEMBERS', base .. 'paused')) do
  add(name)
  known[name].paused = true
end
local clients = redis.call('ZRANGE', base .. 'clients', 0, -1, 'WITHSCORES')
for i = 1, #clients, 2 do
  local gone_after
  for line in string.gmatch(redis.call('HGET', base .. 'cq', clients[i]) or '', '[^\n]+') do
    if not gone_after then
      gone_after = tonumber(line)
    elseif tonumber(clients[i + 1]) + gone_after > now then
      add(line)
      known[line].workers = known[line].workers + 1
    end
  end
end

local rows = {}
for _, name in ipairs(names) do
  local scheduled, ready, oldest = 0, 0, -1
  for _, priority in ipairs(redis.call('ZRANGE', base .. 'p:' .. name, 0, -1)) do
    local key = lane_key(tonumber(priority), name)
    local here = redis.call('ZCOUNT', key, '-inf', now)
    ready = ready + here
    scheduled = scheduled + redis.call('ZCARD', key) - here
    if here > 0 then
      local first = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
      if oldest < 0 or first < oldest then oldest = first end
    end
  end
  local n = #rows
  rows[n + 1], rows[n + 2], rows[n + 3], rows[n + 4] = name, known[name].paused and 1 or 0, scheduled, ready
  rows[n + 5] = tonumber(redis.call('HGET', base .. 'n', 'r:' .. name) or 0)
  rows[n + 6] = redis.call('ZCARD', base .. 'dead:' .. name)
  rows[n + 7] = redis.call('ZCARD', base .. 'done:' .. name)
  rows[n + 8], rows[n + 9] = oldest, known[name].workers
end
return {rows, redis.call('HGETALL', base .. 'n'), redis.call('ZCARD', base .. 'leases')}
