-- grant: gives ready jobs to a worker, in the order of priority, due time and arrival within a queue, and among queues by
-- smooth weighted round-robin.
--
-- KEYS[1]  the prefix
-- ARGV     1 client, 2 worker, 3 length of the lease in ms, 4 "1": it outlives the client, 5 at most so many jobs,
--          6 a job that one more crash would kill only if fewer than so many were given before it; -1: no such limit,
--          7 "1": one job may be given that one more crash makes poison; others are put off,
--          8 so many crashes make poison, 9 a random number, 10 the note for jobs that are put off, 11 bytes of jobs at
--          most; then for each queue its name, weight and score
--
-- {leases: id, token, the job's string as it was before, ...}, {expired: id, place, the string, ...}: left as they are,
-- 1 when 6 ended the pick, ms until the next job is due or -1, {the new scores}, the time

write_without_memory()
redis.call('ZADD', base .. 'clients', 'NX', now, ARGV[1])
local client, worker, lease, outlives = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local room, free_handlers, may_take_last_chance = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'
local max_crashes, random, bytes_left = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[11])

local turns = {}
for i = 12, #ARGV, 3 do
  local queue = ARGV[i]
  local turn = {queue = queue, weight = tonumber(ARGV[i + 1]), score = tonumber(ARGV[i + 2]), lanes = {}, lane = 1, at = 1, ready = {}}
  turn.paused = redis.call('SISMEMBER', base .. 'paused', queue) == 1
  if not turn.paused then turn.lanes = redis.call('ZRANGE', base .. 'p:' .. queue, 0, -1) end
  turns[#turns + 1] = turn
end

-- The next ready job of a queue that has not been looked at; nothing when there is none.
local function peek(turn)
  while turn.lane <= #turn.lanes do
    local member = turn.ready[turn.at]
    if member then return member end
    if not turn.key then
      turn.key = lane_key(tonumber(turn.lanes[turn.lane]), turn.queue)
      turn.seen, turn.at = 0, 1
      turn.ready = redis.call('ZRANGEBYSCORE', turn.key, '-inf', now, 'LIMIT', 0, room)
    elseif #turn.ready == room then  -- There may be more behind those that were only looked at.
      turn.seen = turn.seen + #turn.ready
      turn.ready, turn.at = redis.call('ZRANGEBYSCORE', turn.key, '-inf', now, 'LIMIT', turn.seen, room), 1
    else
      turn.ready, turn.at, turn.key, turn.lane = {}, 1, nil, turn.lane + 1
    end
  end
  return nil
end

local function next_turn()
  local best, total = nil, 0
  for _, turn in ipairs(turns) do
    if peek(turn) then
      turn.score = turn.score + turn.weight
      total = total + turn.weight
      if not best or turn.score > best.score then best = turn end
    end
  end
  if best then best.score = best.score - total end
  return best
end

local worker_number
local function number_of_worker()
  if worker_number then return worker_number end
  local key = base .. 'x:' .. client
  worker_number = tonumber(redis.call('HGET', key, worker))
  if not worker_number then
    worker_number = redis.call('HLEN', key) + 1
    redis.call('HSET', key, worker, worker_number)
  end
  return worker_number
end

-- Grants are written together at the end: removals from a lane must not move what is still to be looked at.
local given, leases, expired, put_off, removals, deadlines = 0, {}, {}, {}, {}, {}
local held_back, full = false, false

while true do
  if given >= room or bytes_left <= 0 then full = true break end
  local turn = next_turn()
  if not turn then break end
  local member = turn.ready[turn.at]
  local id = id_of(member)
  local job = redis.call('GET', job_key(id))
  local h = {struct.unpack(HEADER, job)}
  local faults = h[FAILED] + h[FAILED + 1] + h[FAILED + 2] + h[CRASHED]
  local is_last_chance = h[CRASHED] > 0 and h[CRASHED] + 1 >= max_crashes
  if h[EXPIRES] > 0 and h[EXPIRES] <= now and h[ATTEMPTS] == 0 then
    turn.at = turn.at + 1
    if #expired < 3 * room then
      expired[#expired + 1], expired[#expired + 2], expired[#expired + 3] = id, h[PLACE], job
    end
  elseif free_handlers >= 0 and given >= free_handlers and (h[CRASHED] + 1 >= max_crashes or faults + 1 >= h[MAX_ATTEMPTS]) then
    held_back = true
    break
  elseif is_last_chance and not may_take_last_chance then
    turn.at = turn.at + 1
    put_off[#put_off + 1] = {turn.key, member, id}
  else
    if is_last_chance then may_take_last_chance = false end
    turn.at = turn.at + 1
    given = given + 1
    bytes_left = bytes_left - #job - size_of_body(h, job)
    local token = next_number()
    local flags = has(h[FLAGS], WATCHED) and WATCHED or 0
    if outlives then flags = flags + OUTLIVES end
    removals[turn.key] = removals[turn.key] or {}
    table.insert(removals[turn.key], member)
    deadlines[#deadlines + 1] = now + math.min(lease, h[TIME_LIMIT])
    deadlines[#deadlines + 1] = id
    redis.call('SETRANGE', job_key(id), 16, struct.pack('<BBBBI8I8c8I2I4I4', RUNNING, h[PRIORITY], flags, 0, token, now, client,
                                                        number_of_worker(), lease, h[ATTEMPTS] + 1))
    count('r:' .. turn.queue, 1)
    leases[#leases + 1], leases[#leases + 2], leases[#leases + 3] = id, token, job
  end
end

local PIECE = 1000  -- unpack() has a limit.
local function in_pieces(command, key, arguments)
  for i = 1, #arguments, PIECE do redis.call(command, key, unpack(arguments, i, math.min(#arguments, i + PIECE - 1))) end
end
for key, members in pairs(removals) do in_pieces('ZREM', key, members) end
in_pieces('ZADD', base .. 'leases', deadlines)
for i, what in ipairs(put_off) do
  local h, front = load(what[3])
  h[DUE] = due_after(1000 + (random + i * 7919) % 1000)
  redis.call('ZADD', what[1], h[DUE], what[2])
  save_with_tail(what[3], h, front, faults_in(load_tail(what[3], h, front), 10) .. piece(NOTE, ARGV[10]))
end

local next_due, scores = -1, {}
local function is_next(wait)
  if next_due < 0 or wait < next_due then next_due = wait end
end
for i, turn in ipairs(turns) do
  scores[i] = turn.score
  for _, priority in ipairs(turn.lanes) do
    local key = lane_key(tonumber(priority), turn.queue)
    local from = full and '-inf' or '(' .. text_of(now)  -- What is ready now and was not given was given up for now.
    local first = tonumber(redis.call('ZRANGEBYSCORE', key, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
    if first then
      is_next(math.max(0, math.ceil((first * 1000 - now_us) / 1000)))
    elseif redis.call('EXISTS', key) == 0 then
      redis.call('ZREM', base .. 'p:' .. turn.queue, priority)
    end
  end
end
return finish({leases, expired, held_back and 1 or 0, next_due, scores, now})
