-- stored_job.lua: put in front of every other script. One prefix, one hash tag: KEYS[1] is "{prefix}:", and every key that a
-- script touches begins with it, so all of them are on one node of a cluster.
--
--   j:<id>            string  the job (below); the id as its 16 bytes
--   w:<pri>:<queue>   zset    jobs that wait, by due time: <place><id>, place as 8 bytes, big-endian. pri: 0 to 200
--   p:<queue>         zset    which of these lanes are not empty, the highest priority first
--   leases            zset    ids of running jobs, by the time at which the lease runs out
--   dead:<queue>      zset    dead jobs, by time of death: <place><id>
--   done:<queue>      zset    done jobs that are remembered, by the time they were done: <place><id>
--   u                 hash    unique key -> id of the live job that holds it
--   queues            set     names of queues that have jobs
--   paused            set     names of paused queues
--   n                 hash    counters: accepted, done, cancelled, deleted, purged, forgotten, r:<queue> (running)
--   last              string  the greatest number given as a place or a token so far
--   clients           zset    processes, by when they were last heard of; 8 bytes each
--   cq                hash    client -> ms after which it is gone, and the queues of its subscriptions, a line each
--   pulse             hash    seen: when a process was last heard of, whichever; since: when that began without a gap
--   x:<client>        hash    worker name -> its number with this client
--   format            string  the version of all this; "2": bodies are in a database
--   bodies            string  whose bodies these are there (a number)
--   dropped           list    <time, 8 bytes><id of a body>: not needed since then, still to be removed there
--   swept             string  the id of the last body that was looked at by the sweep
--   swept_before      string  bodies that were written before this time are not accepted any more: they may have been swept
--   notices           channel "q<due> <queue>": something may be had from then on; "e<id>": a watched job has ended
--
-- Times are milliseconds of the server's clock. Places and tokens are numbers that only grow, also when the server lost
-- its newest data: they are at least the microseconds of its clock.
--
-- A job is one string: fixed fields (HEADER), queue, unique key, spec (kind, headers, policy: the client's encoding),
-- body, tail. The tail is what the job met with, as pieces of <tag, 1 byte><size, 4 bytes><bytes>:
--   1 a fault: attempt (4), time (8), fault (1), text   2 note   3 content type of the result   4 result
--
-- Where bodies are in a database (bodies_apart, a line that is put in front of this), a body that is not empty is a reference:
-- its id (16 bytes) and its size (4 bytes).

local base = KEYS[1]

local HEADER = '<I8I8BBBBI8I8c8I2I4I4I4I4I4I4BBI4I8I8BI2I4I4I4'
local HEADER_SIZE = 107
local DUE, PLACE, STATE, PRIORITY, FLAGS, ENDED, TOKEN, SINCE, CLIENT, WORKER, LEASE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local ATTEMPTS, FAILED, CRASHED, UNHEARD, REASON = 12, 13, 16, 17, 18
local MAX_ATTEMPTS, TIME_LIMIT, EXPIRES, QUEUE_SIZE, KEY_SIZE, SPEC_SIZE, BODY_SIZE, TAIL_SIZE = 19, 20, 21, 22, 23, 24, 25, 26

local WAITING, RUNNING, DONE, DEAD = 1, 2, 3, 4                                  -- STATE
local CANCEL_REQUESTED, OUTLIVES, DELIVERED, WATCHED = 1, 2, 4, 8                -- FLAGS
local NO_CLIENT = string.rep('\0', 8)

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- A server that is out of memory refuses a script at its first command that may need more, and only there. What ends
-- jobs must go on, so every script but enqueue begins with a write that needs none.
local function write_without_memory() redis.call('DEL', base .. 'none') end

local function text_of(number) return string.format('%.0f', number) end

local last
local function next_number()
  last = math.max((last or tonumber(redis.call('GET', base .. 'last') or 0)) + 1, now_us)
  return last
end

-- Since when processes are heard of. When nobody was for a while, the server stood still or its clock was set: nobody is to
-- blame for having been silent, and everybody gets their time anew.
local function pulse(client_timeout)
  local seen, since = unpack(redis.call('HMGET', base .. 'pulse', 'seen', 'since'))
  if not seen or math.abs(now - seen) > client_timeout / 2 then since = now end
  redis.call('HSET', base .. 'pulse', 'seen', now, 'since', since)
  return tonumber(since)
end

local counts = {}
local function count(name, by) counts[name] = (counts[name] or 0) + by end

local function has(flags, flag) return math.floor(flags / flag) % 2 == 1 end
local function with(flags, flag) return has(flags, flag) and flags or flags + flag end
local function without(flags, flag) return has(flags, flag) and flags - flag or flags end

-- ---- Lanes.

local lanes, told = {}, {}

local function lane_key(priority, queue) return base .. 'w:' .. string.format('%d', priority) .. ':' .. queue end
local function member_of(place, id) return struct.pack('>I8', place) .. id end
local function id_of(member) return string.sub(member, 9) end

-- Whoever waits for the first job of a lane is told when there is an earlier one.
local function wait_in_lane(id, priority, queue, due, place)
  local key = lane_key(priority, queue)
  local head = lanes[key]
  if not head then
    head = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
    if not head then
      redis.call('ZADD', base .. 'p:' .. queue, 200 - priority, string.format('%d', priority))
      redis.call('SADD', base .. 'queues', queue)
      head = math.huge
    end
    lanes[key] = head
  end
  redis.call('ZADD', key, due, member_of(place, id))
  if due < head then
    lanes[key] = due
    told[queue] = math.min(told[queue] or due, due)
  end
end

local function due_after(delay) return delay > 0 and math.ceil(now_us / 1000) + delay or now end

-- Every script that changes something ends with it.
local function finish(reply)
  if last then redis.call('SET', base .. 'last', text_of(last)) end
  for name, by in pairs(counts) do
    if by ~= 0 then redis.call('HINCRBY', base .. 'n', name, by) end
  end
  for queue, due in pairs(told) do redis.call('PUBLISH', base .. 'notices', 'q' .. text_of(due) .. ' ' .. queue) end
  return reply
end

-- ---- Jobs.

local function job_key(id) return base .. 'j:' .. id end

-- The fields, and everything in front of the body; nothing when there is no such job.
local function load(id)
  local front = redis.call('GETRANGE', job_key(id), 0, 511)
  if front == '' then return nil end
  local h = {struct.unpack(HEADER, front)}
  local size = HEADER_SIZE + h[QUEUE_SIZE] + h[KEY_SIZE] + h[SPEC_SIZE]
  if size > #front then front = redis.call('GETRANGE', job_key(id), 0, size - 1) end
  if size < #front then front = string.sub(front, 1, size) end
  return h, front
end

local function queue_of(h, front) return string.sub(front, HEADER_SIZE + 1, HEADER_SIZE + h[QUEUE_SIZE]) end

local function unique_key_of(h, front)
  local at = HEADER_SIZE + h[QUEUE_SIZE]
  return string.sub(front, at + 1, at + h[KEY_SIZE])
end

local function load_tail(id, h, front)
  if h[TAIL_SIZE] == 0 then return '' end
  local at = #front + h[BODY_SIZE]
  return redis.call('GETRANGE', job_key(id), at, at + h[TAIL_SIZE] - 1)
end

-- ---- Bodies that are in a database.

local BODY_ID = 16

-- What a job takes that is read with its body.
local function size_of_body(h, job)
  if not bodies_apart or h[BODY_SIZE] == 0 then return 0 end
  local at = HEADER_SIZE + h[QUEUE_SIZE] + h[KEY_SIZE] + h[SPEC_SIZE]
  return (struct.unpack('<I4', job, at + BODY_ID + 1))
end

-- Nobody needs it any more.
local function drop_reference(reference)
  if not bodies_apart or reference == '' then return end
  redis.call('RPUSH', base .. 'dropped', struct.pack('>I8', now) .. string.sub(reference, 1, BODY_ID))
end

local function drop_body(id, h, front)
  if not bodies_apart or h[BODY_SIZE] == 0 then return end
  drop_reference(redis.call('GETRANGE', job_key(id), #front, #front + BODY_ID - 1))
end

-- Of a job that is not accepted; `rest` is its string behind DUE and PLACE.
local function drop_body_of_new(rest)
  if not bodies_apart then return end
  local job = string.rep('\0', 16) .. rest
  local h = {struct.unpack(HEADER, job)}
  local at = HEADER_SIZE + h[QUEUE_SIZE] + h[KEY_SIZE] + h[SPEC_SIZE]
  drop_reference(string.sub(job, at + 1, at + h[BODY_SIZE]))
end

-- `oldest`: when the oldest body was written that the script is given, 0: none. The script must answer with what is returned,
-- if anything, and do nothing: bodies as old as that may have been swept.
local function refuse_swept(oldest)
  if not bodies_apart or oldest == '0' then return nil end
  local before = redis.call('GET', base .. 'swept_before')
  if before and tonumber(oldest) < tonumber(before) then return before end
  return nil
end

local function header_of(h) return struct.pack(HEADER, unpack(h)) end

-- The fixed fields, in place.
local function save_header(id, h) redis.call('SETRANGE', job_key(id), 0, header_of(h)) end

-- All of it, with another body or tail.
local function save(id, h, front, body, tail)
  h[BODY_SIZE], h[TAIL_SIZE] = #body, #tail
  redis.call('SET', job_key(id), header_of(h) .. string.sub(front, HEADER_SIZE + 1) .. body .. tail)
end

-- Another tail behind the body that is there. What is left of a longer one does no harm.
local function save_with_tail(id, h, front, tail)
  h[TAIL_SIZE] = #tail
  save_header(id, h)
  if tail ~= '' then redis.call('SETRANGE', job_key(id), #front + h[BODY_SIZE], tail) end
end

local FAULT, NOTE, CONTENT_TYPE, RESULT = 1, 2, 3, 4

local function piece(tag, bytes) return struct.pack('<BI4', tag, #bytes) .. bytes end

-- Of a tail, the faults alone, each a piece; not more than the newest `most`.
local function faults_in(tail, most)
  local pieces, at = {}, 1
  while at <= #tail do
    local tag, size = struct.unpack('<BI4', tail, at)
    if tag == FAULT then pieces[#pieces + 1] = string.sub(tail, at, at + 4 + size) end
    at = at + 5 + size
  end
  return table.concat(pieces, '', math.max(1, #pieces - most + 1))
end

local function tell_end(id, h)
  if has(h[FLAGS], WATCHED) then redis.call('PUBLISH', base .. 'notices', 'e' .. id) end
end

local function free_unique_key(id, h, front)
  if h[KEY_SIZE] == 0 then return end
  local key = unique_key_of(h, front)
  if redis.call('HGET', base .. 'u', key) == id then redis.call('HDEL', base .. 'u', key) end
end

-- The job is gone, wherever it was.
local function remove(id, h, front, why)
  local queue = queue_of(h, front)
  if h[STATE] == WAITING then
    redis.call('ZREM', lane_key(h[PRIORITY], queue), member_of(h[PLACE], id))
  elseif h[STATE] == RUNNING then
    redis.call('ZREM', base .. 'leases', id)
    count('r:' .. queue, -1)
  elseif h[STATE] == DEAD then
    redis.call('ZREM', base .. 'dead:' .. queue, member_of(h[PLACE], id))
  end
  free_unique_key(id, h, front)
  drop_body(id, h, front)
  redis.call('DEL', job_key(id))
  count(why, 1)
  tell_end(id, h)
end

-- Accepts the job whose 7 arguments begin at ARGV[i]: id, delay, due time or '', priority (0 to 200), queue, unique key,
-- and its string behind DUE and PLACE. A delay of -1: its due time stays as it is though it has passed. 1: accepted, 0: there
-- is one with this id, otherwise the id of the job that holds the unique key.
local function accept(i)
  local id, delay, due, priority, queue, key = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5]
  local rest = ARGV[i + 6]
  local is_dead = string.byte(rest, 1) == DEAD  -- It comes from another broker.
  if key ~= '' and not is_dead then
    if redis.call('EXISTS', job_key(id)) == 1 then return 0 end
    local holder = redis.call('HGET', base .. 'u', key)
    if holder then return holder end
  end
  if due == '' then
    due = due_after(math.max(delay, 0))
  else
    due = delay < 0 and tonumber(due) or math.max(tonumber(due), now)
  end
  local finished = now
  if is_dead then
    finished = struct.unpack('<I8', rest, 13)
    if finished == 0 then
      finished = now
      rest = string.sub(rest, 1, 12) .. struct.pack('<I8', now) .. string.sub(rest, 21)
    end
  end
  local place = next_number()
  if not redis.call('SET', job_key(id), struct.pack('<I8I8', due, place) .. rest, 'NX') then return 0 end
  count('accepted', 1)
  if is_dead then
    redis.call('SADD', base .. 'queues', queue)
    redis.call('ZADD', base .. 'dead:' .. queue, finished, member_of(place, id))
    return 1
  end
  if key ~= '' then redis.call('HSET', base .. 'u', key, id) end
  wait_in_lane(id, priority, queue, due, place)
  return 1
end
local ACCEPT_ARGUMENTS = 7
