-- save_body: another body for the next attempt of a job that is being run.
--
-- KEYS[1]  the prefix
-- ARGV     1 id, 2 token, 3 body, 4 when it was written, if it is in a database, or 0
--
-- 1: written. 0: not running with this token. -1: there is no such job. A time instead: refuse_swept().

local swept = refuse_swept(ARGV[4])
if swept then return swept end
write_without_memory()
local id = ARGV[1]
local h, front = load(id)
if not h or h[STATE] ~= RUNNING or h[TOKEN] ~= tonumber(ARGV[2]) then
  drop_reference(ARGV[3])
  return h and 0 or -1
end
drop_body(id, h, front)
local tail = load_tail(id, h, front)
h[FLAGS] = with(h[FLAGS], DELIVERED)
save(id, h, front, ARGV[3], tail)
return 1
