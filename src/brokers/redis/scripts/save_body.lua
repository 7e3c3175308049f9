-- save_body: another body for the next attempt of a job that is being run.
--
-- KEYS[1]  the prefix
-- ARGV     1 id, 2 token, 3 body
--
-- 1: written. 0: not running with this token. -1: there is no such job.

write_without_memory()
local id = ARGV[1]
local h, front = load(id)
if not h then return -1 end
if h[STATE] ~= RUNNING or h[TOKEN] ~= tonumber(ARGV[2]) then return 0 end
local tail = load_tail(id, h, front)
h[FLAGS] = with(h[FLAGS], DELIVERED)
save(id, h, front, ARGV[3], tail)
return 1
