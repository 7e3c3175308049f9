-- sweep_bodies: which of the bodies in the database are needed by no job. From now on no body is accepted that was written before the
-- time that is given: so those that are not needed now never will be.
--
-- KEYS[1]  the prefix
-- ARGV     1 that time, 2 the id up to which bodies have been looked at, or '': as it was; then for each body the id of its job and
--          its own
--
-- the id up to which bodies have been looked at, or '', {for each body 1: needed, or 0}

write_without_memory()
if tonumber(ARGV[1]) > tonumber(redis.call('GET', base .. 'swept_before') or 0) then redis.call('SET', base .. 'swept_before', ARGV[1]) end
if ARGV[2] ~= '' then redis.call('SET', base .. 'swept', ARGV[2]) end
local needed = {}
for i = 3, #ARGV, 2 do
  local h, front = load(ARGV[i])
  local is_needed = h and h[BODY_SIZE] > 0 and redis.call('GETRANGE', job_key(ARGV[i]), #front, #front + BODY_ID - 1) == ARGV[i + 1]
  needed[#needed + 1] = is_needed and 1 or 0
end
return {redis.call('GET', base .. 'swept') or '', needed}
