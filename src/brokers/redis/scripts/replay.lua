-- replay: dead jobs wait again.
--
-- KEYS[1]  the prefix
-- ARGV     1 "1": attempts and faults are kept, 2 ms until they are due; then the ids
--
-- For each id: -1: it is so. -2: there is no such job. A text: the id of the job that holds its unique key. Otherwise the
-- state it is in (JobState).

write_without_memory()
local replies = {}
for i = 3, #ARGV do
  local id, reply = ARGV[i], -1
  local h, front = load(id)
  local key = h and h[KEY_SIZE] > 0 and unique_key_of(h, front)
  local holder = key and redis.call('HGET', base .. 'u', key)
  if not h then
    reply = -2
  elseif h[STATE] ~= DEAD then
    reply = h[STATE] == WAITING and (h[DUE] > now and 0 or 1) or h[STATE]
  elseif holder then
    reply = holder
  else
    local queue = queue_of(h, front)
    redis.call('ZREM', base .. 'dead:' .. queue, member_of(h[PLACE], id))
    h[STATE], h[ENDED], h[REASON], h[SINCE], h[UNHEARD], h[FLAGS] = WAITING, 0, 0, 0, 0, 0
    h[DUE], h[PLACE] = due_after(tonumber(ARGV[2])), next_number()
    if ARGV[1] ~= '1' then
      h[ATTEMPTS] = 0
      for fault = 0, 3 do h[FAILED + fault] = 0 end
    end
    if key then redis.call('HSET', base .. 'u', key, id) end
    wait_in_lane(id, h[PRIORITY], queue, h[DUE], h[PLACE])
    save_with_tail(id, h, front, faults_in(load_tail(id, h, front), 10) .. piece(NOTE, 'replayed'))
  end
  replies[#replies + 1] = reply
end
return finish(replies)
