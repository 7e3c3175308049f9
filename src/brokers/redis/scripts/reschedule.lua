-- reschedule: another due time for a job that waits.
--
-- KEYS[1]  the prefix
-- ARGV     1 id, 2 due time, 3 it may be at most so many ms from now
--
-- -1: it is so. -2: there is no such job. -3: too far away. Otherwise the state it is in (JobState).

write_without_memory()
local id, due = ARGV[1], math.max(tonumber(ARGV[2]), now)
local h, front = load(id)
if not h then return -2 end
if h[STATE] ~= WAITING then return h[STATE] end
if due - now > tonumber(ARGV[3]) then return -3 end
local queue = queue_of(h, front)
redis.call('ZREM', lane_key(h[PRIORITY], queue), member_of(h[PLACE], id))
h[DUE] = due
wait_in_lane(id, h[PRIORITY], queue, due, h[PLACE])
save_with_tail(id, h, front, faults_in(load_tail(id, h, front), 10))
return finish(-1)
