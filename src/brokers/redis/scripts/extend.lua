-- extend: leases go on for another lease time, but not past the job's time limit; and they have reached their workers.
--
-- KEYS[1]  the prefix
-- ARGV     1 "1": they go on, "0": they are only marked as delivered; then for each lease its id and token
--
-- For each lease: 0: not ours any more. 1: it goes on. 2: it goes on, and its cancellation was asked for.

write_without_memory()
local replies = {}
for i = 2, #ARGV, 2 do
  local id, reply = ARGV[i], 0
  local h = load(id)
  if h and h[STATE] == RUNNING and h[TOKEN] == tonumber(ARGV[i + 1]) then
    if ARGV[1] == '1' then
      redis.call('ZADD', base .. 'leases', math.min(now + h[LEASE], h[SINCE] + h[TIME_LIMIT]), id)
    end
    if not has(h[FLAGS], DELIVERED) then
      h[FLAGS] = with(h[FLAGS], DELIVERED)
      save_header(id, h)
    end
    reply = has(h[FLAGS], CANCEL_REQUESTED) and 2 or 1
  end
  replies[#replies + 1] = reply
end
return replies
