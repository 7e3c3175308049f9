-- find: one job.
--
-- KEYS[1]  the prefix
-- ARGV     1 id, 2 "1": its end will be told
--
-- the time, the job's string or nil, the name of its worker

local id = ARGV[1]
local job = redis.call('GET', job_key(id))
if not job then return {now} end
local h = {struct.unpack(HEADER, job)}
if ARGV[2] == '1' and (h[STATE] == WAITING or h[STATE] == RUNNING) and not has(h[FLAGS], WATCHED) then
  write_without_memory()
  h[FLAGS] = with(h[FLAGS], WATCHED)
  save_header(id, h)
end
local name = ''
if h[STATE] == RUNNING then
  local workers = redis.call('HGETALL', base .. 'x:' .. h[CLIENT])
  for i = 1, #workers, 2 do
    if tonumber(workers[i + 1]) == h[WORKER] then name = workers[i] end
  end
end
return {now, job, name}
