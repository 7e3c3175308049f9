-- client_leases: the leases of a client that end with it.
--
-- KEYS[1]  the prefix
-- ARGV     1 client, 2 "1": if there are none, the client is forgotten
--
-- id, token, ... of at most 1000

local leases = {}
for _, id in ipairs(redis.call('ZRANGE', base .. 'leases', 0, -1)) do
  local h = load(id)
  if h and h[CLIENT] == ARGV[1] and not has(h[FLAGS], OUTLIVES) then
    leases[#leases + 1], leases[#leases + 2] = id, h[TOKEN]
    if #leases == 2000 then break end
  end
end
if #leases == 0 and ARGV[2] == '1' then
  redis.call('ZREM', base .. 'clients', ARGV[1])
  redis.call('HDEL', base .. 'cq', ARGV[1])
  redis.call('DEL', base .. 'x:' .. ARGV[1])
end
return leases
