-- pause: no job of a queue is given, or some are again.
--
-- KEYS[1]  the prefix
-- ARGV     1 queue, 2 "1": paused

write_without_memory()
if ARGV[2] == '1' then
  redis.call('SADD', base .. 'paused', ARGV[1])
else
  redis.call('SREM', base .. 'paused', ARGV[1])
  told[ARGV[1]] = now
end
return finish(1)
