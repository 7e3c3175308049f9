-- forget: done and dead jobs that were kept for long enough, and the names of queues that have nothing left.
--
-- KEYS[1]  the prefix
-- ARGV     1 done jobs are kept for so many ms, 2 dead ones; 0: for ever, 3 at most so many jobs
--
-- How many jobs.

write_without_memory()
local left = tonumber(ARGV[3])
local forgotten = 0

local function forget_from(key, kept)
  local members = redis.call('ZRANGEBYSCORE', key, '-inf', now - kept, 'LIMIT', 0, math.min(left, 1000))
  if #members == 0 then return 0 end
  local keys = {}
  for i, member in ipairs(members) do
    keys[i] = job_key(id_of(member))
    local h, front = nil, nil
    if bodies_apart then h, front = load(id_of(member)) end
    if h then drop_body(id_of(member), h, front) end
  end
  redis.call('ZREM', key, unpack(members))
  redis.call('DEL', unpack(keys))
  left = left - #members
  forgotten = forgotten + #members
  return #members
end

for _, queue in ipairs(redis.call('SMEMBERS', base .. 'queues')) do
  forget_from(base .. 'done:' .. queue, tonumber(ARGV[1]))
  if ARGV[2] ~= '0' then count('forgotten', forget_from(base .. 'dead:' .. queue, tonumber(ARGV[2]))) end
  local running = redis.call('HGET', base .. 'n', 'r:' .. queue)
  if (running == '0' or not running) and
     redis.call('EXISTS', base .. 'p:' .. queue, base .. 'done:' .. queue, base .. 'dead:' .. queue) == 0 then
    redis.call('SREM', base .. 'queues', queue)
    redis.call('HDEL', base .. 'n', 'r:' .. queue)
  end
  if left <= 0 then break end
end
return finish(forgotten)
