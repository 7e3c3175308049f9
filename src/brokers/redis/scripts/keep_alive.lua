-- keep_alive: a client lives.
--
-- KEYS[1]  the prefix
-- ARGV     1 client, 2 it is gone when it is not heard of for so many ms, 3 the queues of its subscriptions, a line each

write_without_memory()
pulse(tonumber(ARGV[2]))
redis.call('ZADD', base .. 'clients', now, ARGV[1])
redis.call('HSET', base .. 'cq', ARGV[1], ARGV[2] .. '\n' .. ARGV[3])
return 1
