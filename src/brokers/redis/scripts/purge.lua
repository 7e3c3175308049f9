-- purge: removes jobs that wait in a queue.
--
-- KEYS[1]  the prefix
-- ARGV     1 queue, 2 at most so many
--
-- How many.

write_without_memory()
local queue, left, removed = ARGV[1], tonumber(ARGV[2]), 0
for _, priority in ipairs(redis.call('ZRANGE', base .. 'p:' .. queue, 0, -1)) do
  for _, member in ipairs(redis.call('ZRANGE', lane_key(tonumber(priority), queue), 0, left - removed - 1)) do
    local id = id_of(member)
    local h, front = load(id)
    remove(id, h, front, 'purged')
    removed = removed + 1
  end
  if removed >= left then break end
end
return finish(removed)
