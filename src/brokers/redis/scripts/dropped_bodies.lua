-- dropped_bodies: bodies that are to be removed from the database, the oldest first.
--
-- KEYS[1]  the prefix
-- ARGV     1 not needed for so many ms at least, 2 at most so many, 3 how many of the last answer were removed there, and
--          4 the first of them, or ''
--
-- {<time><id>, ...}. They stay in the list until somebody says that they were removed: whoever dies in between loses nothing.

write_without_memory()
local key = base .. 'dropped'
-- Another process may have been quicker.
if ARGV[4] ~= '' and redis.call('LINDEX', key, 0) == ARGV[4] then redis.call('LTRIM', key, tonumber(ARGV[3]), -1) end
local due = {}
for _, entry in ipairs(redis.call('LRANGE', key, 0, tonumber(ARGV[2]) - 1)) do
  if struct.unpack('>I8', entry) > now - tonumber(ARGV[1]) then break end
  due[#due + 1] = entry
end
return due
