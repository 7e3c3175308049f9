-- end: how attempts end, each together with the jobs that become real with it.
--
-- KEYS[1]  the prefix
-- ARGV     1 done jobs of a queue that are remembered at most, 2 when the oldest body was written that is in a database, or 0;
--          then for each ending:
--          id, token, how (Ends: 0 done, 1 retry, 2 dead, 3 returned, 4 expired, 5 unheard), "1": by its worker, ms until
--          the next attempt, fault, reason, error, note, result, its content type, "1": there is another body, that body,
--          how many jobs come with it, and for each of these the 7 arguments of accept()
--
-- For each ending: 1: it is so, or was already. 0: not running with this token. -1: there is no such job. Instead of all that a
-- time: refuse_swept().

local swept = refuse_swept(ARGV[2])
if swept then return swept end
write_without_memory()
local ENDS_DONE, ENDS_RETRY, ENDS_DEAD, ENDS_RETURNED, ENDS_EXPIRED, ENDS_UNHEARD = 0, 1, 2, 3, 4, 5
local HISTORY = 10
local done_limit = tonumber(ARGV[1])
local finished_in = {}

local function charge(id, h, front, fault, text)
  h[FAILED + fault] = h[FAILED + fault] + 1
  h[UNHEARD] = 0
  local entry = struct.pack('<I4I8B', h[ATTEMPTS], now, fault) .. text
  return faults_in(load_tail(id, h, front), HISTORY - 1) .. piece(FAULT, entry)
end

-- Out of its lane or its lease.
local function take_out(id, h, queue)
  if h[STATE] == RUNNING then
    redis.call('ZREM', base .. 'leases', id)
    count('r:' .. queue, -1)
  else
    redis.call('ZREM', lane_key(h[PRIORITY], queue), member_of(h[PLACE], id))
  end
  h[CLIENT], h[WORKER], h[LEASE] = NO_CLIENT, 0, 0
  h[FLAGS] = has(h[FLAGS], WATCHED) and WATCHED or 0
end

local function finish_job(id, h, front, queue, state)
  h[STATE], h[SINCE], h[PLACE] = state, now, next_number()
  local set = base .. (state == DONE and 'done:' or 'dead:') .. queue
  redis.call('ZADD', set, now, member_of(h[PLACE], id))
  free_unique_key(id, h, front)
end

local function wait_again(id, h, queue, after)
  h[STATE], h[SINCE] = WAITING, 0
  if after then h[DUE] = due_after(after) end
  wait_in_lane(id, h[PRIORITY], queue, h[DUE], h[PLACE])
end

local body_is_used
local function end_one(i)
  local id, token, how, is_settled = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3] == '1'
  local after, fault, text, note = tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5]), ARGV[i + 7], ARGV[i + 8]
  local h, front = load(id)
  if not h then return -1 end
  if how == ENDS_EXPIRED then
    if h[STATE] ~= WAITING or h[PLACE] ~= token then return 0 end
  elseif h[STATE] ~= RUNNING or h[TOKEN] ~= token then
    local again = is_settled and h[STATE] ~= RUNNING and h[TOKEN] == token and h[ENDED] == how + 1
    return again and 1 or 0, again
  end
  local queue = queue_of(h, front)
  local cancelled = has(h[FLAGS], CANCEL_REQUESTED)
  if cancelled and (how == ENDS_RETRY or how == ENDS_RETURNED or how == ENDS_UNHEARD) then
    remove(id, h, front, 'cancelled')
    return 1
  end
  take_out(id, h, queue)
  h[ENDED] = is_settled and how + 1 or 0
  if how == ENDS_DONE then
    local result, content_type = ARGV[i + 9], ARGV[i + 10]
    local tail = faults_in(load_tail(id, h, front), HISTORY)
    if result ~= '' then tail = tail .. piece(CONTENT_TYPE, content_type) .. piece(RESULT, result) end
    finish_job(id, h, front, queue, DONE)
    drop_body(id, h, front)
    save(id, h, front, '', tail)
    count('done', 1)
    finished_in[queue] = true
    tell_end(id, h)
  elseif how == ENDS_RETRY then
    local tail = charge(id, h, front, fault, text)
    wait_again(id, h, queue, after)
    if ARGV[i + 11] == '1' then
      drop_body(id, h, front)
      body_is_used = true
      save(id, h, front, ARGV[i + 12], tail)
    else
      save_with_tail(id, h, front, tail)
    end
  elseif how == ENDS_DEAD then
    local tail = charge(id, h, front, fault, text)
    h[REASON] = tonumber(ARGV[i + 6])
    finish_job(id, h, front, queue, DEAD)
    save_with_tail(id, h, front, tail)
    tell_end(id, h)
  elseif how == ENDS_EXPIRED then
    h[REASON] = tonumber(ARGV[i + 6])
    finish_job(id, h, front, queue, DEAD)
    save_with_tail(id, h, front, faults_in(load_tail(id, h, front), HISTORY) .. piece(NOTE, note))
    tell_end(id, h)
  else
    -- Without a wait it keeps its due time, and so its place.
    h[ATTEMPTS] = how == ENDS_RETURNED and h[ATTEMPTS] - 1 or h[ATTEMPTS]
    h[UNHEARD] = how == ENDS_UNHEARD and h[UNHEARD] + 1 or 0
    wait_again(id, h, queue, after > 0 and after or nil)
    save_with_tail(id, h, front, faults_in(load_tail(id, h, front), HISTORY) .. piece(NOTE, note))
  end
  return 1
end

local replies, i = {}, 3
while i <= #ARGV do
  local effects = tonumber(ARGV[i + 13])
  body_is_used = false
  local reply, again = end_one(i)
  replies[#replies + 1] = reply
  if not body_is_used then drop_reference(ARGV[i + 12]) end
  i = i + 14
  for _ = 1, effects do
    if reply ~= 1 or again or accept(i) ~= 1 then drop_body_of_new(ARGV[i + 6]) end
    i = i + ACCEPT_ARGUMENTS
  end
end

-- Beyond the limit the oldest are forgotten at once, so that memory is bounded at any rate of work.
for queue in pairs(finished_in) do
  local key = base .. 'done:' .. queue
  local excess = redis.call('ZCARD', key) - done_limit
  if excess > 0 then
    local popped, keys = redis.call('ZPOPMIN', key, math.min(excess, 1000)), {}
    for p = 1, #popped, 2 do keys[#keys + 1] = job_key(id_of(popped[p])) end
    redis.call('DEL', unpack(keys))
  end
end
return finish(replies)
