-- overdue: leases that ran out, passed the time limit of their job, or belong to clients that are gone. What becomes of
-- them is decided by whoever asks, and written by `end`.
--
-- KEYS[1]  the prefix
-- ARGV     1 a client is gone when it was not heard of for so many ms, 2 at most so many leases, 3 the time since which
--          the server has been there: everybody counts as heard of then, and leases have their whole length from then on
--
-- {id, fault (Fault), "1": outlives its client, was not delivered, and the client is gone, the job's string without
-- body, ...}, ms until the next lease runs out or -1, the time

write_without_memory()
local limit = tonumber(ARGV[2])
local since = math.max(tonumber(ARGV[3]), pulse(tonumber(ARGV[1])))
local silent_since = now - tonumber(ARGV[1])
local LOST, TIMED_OUT, CRASHED_FAULT = 2, 1, 3

local function is_gone(client)
  local heard = tonumber(redis.call('ZSCORE', base .. 'clients', client) or 0)
  return math.max(heard, since) <= silent_since
end

local found, seen = {}, {}
local function add(id, h, front, fault, unheard)
  if seen[id] or #found >= 4 * limit then return end
  seen[id] = true
  local n = #found
  found[n + 1], found[n + 2], found[n + 3], found[n + 4] = id, fault, unheard and 1 or 0, front .. load_tail(id, h, front)
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. 'leases', '-inf', now, 'LIMIT', 0, limit)) do
  local h, front = load(id)
  local time_is_up = h[SINCE] + h[TIME_LIMIT] <= now
  if since + h[LEASE] > now and not time_is_up then
    -- The server was away while the worker would have been heard.
    redis.call('ZADD', base .. 'leases', math.min(since + h[LEASE], h[SINCE] + h[TIME_LIMIT]), id)
  else
    local gone = is_gone(h[CLIENT])
    local outlives = has(h[FLAGS], OUTLIVES)
    local unheard = gone and outlives and not has(h[FLAGS], DELIVERED)
    add(id, h, front, time_is_up and TIMED_OUT or gone and not outlives and CRASHED_FAULT or LOST, unheard)
  end
end

-- Clients that are gone: their leases end now, and when there are none left, they are forgotten.
local gone, any = {}, false
if since <= silent_since then
  for _, client in ipairs(redis.call('ZRANGEBYSCORE', base .. 'clients', '-inf', silent_since)) do gone[client], any = 0, true end
end
if any then
  for _, id in ipairs(redis.call('ZRANGE', base .. 'leases', 0, -1)) do
    local h, front = load(id)
    if gone[h[CLIENT]] and not has(h[FLAGS], OUTLIVES) then
      gone[h[CLIENT]] = gone[h[CLIENT]] + 1
      add(id, h, front, CRASHED_FAULT, false)
    end
  end
  for client, held in pairs(gone) do
    if held == 0 then
      redis.call('ZREM', base .. 'clients', client)
      redis.call('HDEL', base .. 'cq', client)
      redis.call('DEL', base .. 'x:' .. client)
    end
  end
end

local first = tonumber(redis.call('ZRANGE', base .. 'leases', 0, 0, 'WITHSCORES')[2])
return {found, first and math.max(0, first - now) or -1, now}
