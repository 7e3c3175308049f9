-- The statements of the PostgreSQL dialect, one after another:
--
--   -- @name(parameters) -> columns
--
-- A parameter with [] is a list of rows' values. `bide.` is replaced by the schema that was configured, {job} by the columns of
-- a job without its body, {now} by the time of the transaction in milliseconds. mysql_statements.sql has the same names with
-- the same parameters and columns.

-- @has_schema(schema) -> 0 or 1
SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = $1::text AND tablename = 'meta'

-- @version() -> version
SELECT version::bigint FROM bide.meta

-- @insert(id[], queue[], kind[], retry[], due_ms[] or null, delay_ms[], expires_ms[], time_limit_ms[], priority[], content_type[],
--         headers[], unique_key[], body[])
-- In the order of the list: seq is the order of arrival. A due time in the past means now. A delay begins within the
-- millisecond that has begun: it is counted from the end of it.
INSERT INTO bide.jobs (id, queue, kind, retry, due_ms, expires_ms, time_limit_ms, priority, content_type, headers, unique_key, body)
SELECT id, queue, kind, retry, greatest(coalesce(due_ms, {now} + delay_ms + sign(delay_ms)::bigint), {now}), expires_ms, time_limit_ms, priority::smallint,
       content_type, headers, unique_key, body
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
            $10::bytea[], $11::bytea[], $12::bytea[], $13::bytea[])
  WITH ORDINALITY AS given(id, queue, kind, retry, due_ms, delay_ms, expires_ms, time_limit_ms, priority, content_type, headers,
                           unique_key, body, place)
ORDER BY place

-- @insert_past(id[], queue[], kind[], retry[], due_ms[] or null, delay_ms[], expires_ms[], time_limit_ms[], priority[],
--              content_type[], headers[], unique_key[], body[], state[], finished_ms[] or null, attempts[], failed[], timed_out[],
--              lost[], crashed[], dead_reason[], history[])
-- Jobs that come from another broker: a due time that has passed stays as it is.
INSERT INTO bide.jobs (id, queue, kind, retry, due_ms, expires_ms, time_limit_ms, priority, content_type, headers, unique_key, body,
                       state, finished_ms, attempts, failed, timed_out, lost, crashed, dead_reason, history)
SELECT id, queue, kind, retry, coalesce(due_ms, {now} + delay_ms + sign(delay_ms)::bigint), expires_ms, time_limit_ms, priority::smallint, content_type,
       headers, unique_key, body, state::smallint, CASE WHEN state = 3 THEN coalesce(finished_ms, {now}) END, attempts::integer,
       failed::integer, timed_out::integer, lost::integer, crashed::integer, dead_reason::smallint, history
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
            $10::bytea[], $11::bytea[], $12::bytea[], $13::bytea[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[],
            $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::bytea[])
  WITH ORDINALITY AS given(id, queue, kind, retry, due_ms, delay_ms, expires_ms, time_limit_ms, priority, content_type, headers,
                           unique_key, body, state, finished_ms, attempts, failed, timed_out, lost, crashed, dead_reason, history,
                           place)
ORDER BY place

-- @existing(id[]) -> id
SELECT id FROM bide.jobs WHERE id = ANY($1::uuid[])

-- @holders(unique_key[]) -> unique_key, id
SELECT unique_key, id FROM bide.jobs WHERE unique_key = ANY($1::bytea[]) AND unique_key IS NOT NULL AND state < 2

-- @count(slot, accepted, done, cancelled, deleted, purged, forgotten, lost, timed_out, crashed)
INSERT INTO bide.counters AS c VALUES ($1::bigint, {now}, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint,
                                       $8::bigint, $9::bigint, $10::bigint)
ON CONFLICT (slot) DO UPDATE SET touched_ms = excluded.touched_ms, accepted = c.accepted + excluded.accepted,
  done = c.done + excluded.done, cancelled = c.cancelled + excluded.cancelled, deleted = c.deleted + excluded.deleted,
  purged = c.purged + excluded.purged, forgotten = c.forgotten + excluded.forgotten, lost = c.lost + excluded.lost,
  timed_out = c.timed_out + excluded.timed_out, crashed = c.crashed + excluded.crashed

-- @notify(channel, before, due_ms or null, delay_ms or null, behind)
-- With a time or a delay, how long it still lasts is said in between: other machines have other clocks.
-- GREATEST() passes over NULL: without a time there must be nothing in between, and not a 0.
SELECT pg_notify($1::text, $2::text ||
                 CASE WHEN coalesce($3::bigint, $4::bigint) IS NULL THEN ''
                      ELSE greatest(coalesce($3::bigint - {now}, $4::bigint), 0)::text END || $5::text)

-- @pick(queue, limit) -> now, job
-- Ready jobs in order, locked; those that others have locked are passed over. Every priority that the queue has is a range of
-- the index of its own, because jobs that are not due yet lie behind the ready ones of each.
WITH RECURSIVE levels(priority) AS (
  (SELECT priority FROM bide.jobs WHERE queue = $1::text AND state = 0 ORDER BY priority DESC LIMIT 1)
  UNION ALL
  SELECT (SELECT j.priority FROM bide.jobs j WHERE j.queue = $1::text AND j.state = 0 AND j.priority < l.priority
          ORDER BY j.priority DESC LIMIT 1)
  FROM levels l WHERE l.priority IS NOT NULL)
SELECT {now}, picked.* FROM levels CROSS JOIN LATERAL (
  SELECT {job} FROM bide.jobs
  WHERE queue = $1::text AND state = 0 AND priority = levels.priority AND due_ms <= {now}
  ORDER BY due_ms, seq LIMIT $2::bigint FOR UPDATE SKIP LOCKED) picked
WHERE levels.priority IS NOT NULL
  AND NOT EXISTS (SELECT FROM bide.queues WHERE name = $1::text AND paused)
LIMIT $2::bigint

-- @next_due(queue) -> now, due_ms or null
WITH RECURSIVE levels(priority) AS (
  (SELECT priority FROM bide.jobs WHERE queue = $1::text AND state = 0 ORDER BY priority DESC LIMIT 1)
  UNION ALL
  SELECT (SELECT j.priority FROM bide.jobs j WHERE j.queue = $1::text AND j.state = 0 AND j.priority < l.priority
          ORDER BY j.priority DESC LIMIT 1)
  FROM levels l WHERE l.priority IS NOT NULL)
SELECT {now}, min((SELECT due_ms FROM bide.jobs WHERE queue = $1::text AND state = 0 AND priority = levels.priority
                   ORDER BY due_ms, seq LIMIT 1))
FROM levels
WHERE levels.priority IS NOT NULL AND NOT EXISTS (SELECT FROM bide.queues WHERE name = $1::text AND paused)

-- @grant(id[], client[], lease_ms[], flags[], worker[])
UPDATE bide.jobs SET state = 1, grants = grants + 1, attempts = attempts + 1, client = given.client, lease_ms = given.lease_ms,
  deadline_ms = {now} + given.lease_ms, limit_ms = {now} + time_limit_ms, flags = (jobs.flags & 8) | given.flags, settled = -1,
  worker = given.worker
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) AS given(job, client, lease_ms, flags, worker)
WHERE id = given.job

-- @bodies(id[]) -> id, body
SELECT id, body FROM bide.jobs WHERE id = ANY($1::uuid[])

-- @lock(id[]) -> now, job
SELECT {now}, {job} FROM bide.jobs WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE

-- @lock_free(id[]) -> now, job
-- Of these, the ones that nobody else has locked: a handler's own transaction may have settled its job and go on for a while.
SELECT {now}, {job} FROM bide.jobs WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED

-- @done(id[], settled[], result[], result_type[])
-- What is left of a done job is what it takes to know it again, and its result.
UPDATE bide.jobs SET state = 2, finished_ms = {now}, settled = given.settled, result = given.result, result_type = given.result_type,
  client = 0, body = '', headers = NULL, content_type = NULL, unique_key = NULL, worker = NULL, note = NULL
FROM unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::bytea[]) AS given(job, settled, result, result_type)
WHERE id = given.job

-- @change(id[], state[], due_ms[], expires_ms[], finished_ms[], grants[], attempts[], failed[], timed_out[], lost[], crashed[],
--         flags[], unheard[], settled[], dead_reason[], note[], history[])
UPDATE bide.jobs SET state = given.state, due_ms = given.due_ms, expires_ms = given.expires_ms, finished_ms = given.finished_ms,
  grants = given.grants, attempts = given.attempts, failed = given.failed, timed_out = given.timed_out, lost = given.lost,
  crashed = given.crashed, flags = given.flags, unheard = given.unheard, settled = given.settled, dead_reason = given.dead_reason,
  note = given.note, history = given.history, client = 0, worker = NULL
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bytea[],
            $17::bytea[])
  AS given(job, state, due_ms, expires_ms, finished_ms, grants, attempts, failed, timed_out, lost, crashed, flags, unheard,
           settled, dead_reason, note, history)
WHERE id = given.job

-- @set_body(id[], body[])
UPDATE bide.jobs SET body = given.body FROM unnest($1::uuid[], $2::bytea[]) AS given(job, body) WHERE id = given.job

-- @set_flags(id[], flags[])
UPDATE bide.jobs SET flags = jobs.flags | given.flags FROM unnest($1::uuid[], $2::bigint[]) AS given(job, flags) WHERE id = given.job

-- @extend(id[])
-- Neither column has an index: the row stays on its page.
UPDATE bide.jobs SET deadline_ms = {now} + lease_ms, flags = flags | 2 WHERE id = ANY($1::uuid[])

-- @remove(id[])
DELETE FROM bide.jobs WHERE id = ANY($1::uuid[])

-- @settings() -> name, value
SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')

-- @pulse(client_timeout_ms)
-- When nobody was heard of for a while, the server was away or its clock was set: nobody is to blame for having been silent.
INSERT INTO bide.pulse AS p VALUES (1, {now}, {now})
ON CONFLICT (one) DO UPDATE SET seen_ms = {now},
  since_ms = CASE WHEN abs({now} - p.seen_ms) > $1::bigint / 2 THEN {now} ELSE p.since_ms END

-- @overdue(client_timeout_ms, limit) -> now, is_gone, seen_ms or null, job
SELECT {now}, (seen_ms IS NULL OR greatest(seen_ms, (SELECT since_ms FROM bide.pulse)) + $1::bigint <= {now})::integer, seen_ms, {job}
FROM bide.jobs LEFT JOIN (SELECT client AS known, seen_ms FROM bide.clients) AS heard_of ON known = client
WHERE state = 1 AND (deadline_ms <= {now} OR limit_ms <= {now}
                     OR ((flags & 1) = 0 AND (seen_ms IS NULL OR greatest(seen_ms, (SELECT since_ms FROM bide.pulse)) + $1::bigint <= {now})))
LIMIT $2::bigint

-- @clients_seen(client[]) -> client, seen_ms
SELECT client, seen_ms FROM bide.clients WHERE client = ANY($1::bigint[]) ORDER BY client FOR UPDATE

-- @next_lease_end() -> now, ms or null
SELECT {now}, min(least(deadline_ms, limit_ms)) FROM bide.jobs WHERE state = 1

-- @forget_clients(client_timeout_ms)
DELETE FROM bide.clients c
WHERE greatest(seen_ms, (SELECT since_ms FROM bide.pulse)) + $1::bigint <= {now}
  AND NOT EXISTS (SELECT FROM bide.jobs j WHERE j.state = 1 AND j.client = c.client AND (j.flags & 1) = 0)

-- @know_client(client)
INSERT INTO bide.clients VALUES ($1::bigint, {now}, '') ON CONFLICT (client) DO UPDATE SET seen_ms = excluded.seen_ms

-- @keep_alive(client, queues)
INSERT INTO bide.clients VALUES ($1::bigint, {now}, $2::bytea)
ON CONFLICT (client) DO UPDATE SET seen_ms = excluded.seen_ms, queues = excluded.queues

-- @client_leases(client) -> now, job
SELECT {now}, {job} FROM bide.jobs WHERE state = 1 AND client = $1::bigint FOR UPDATE

-- @remove_client(client)
DELETE FROM bide.clients WHERE client = $1::bigint

-- @client_queues(client_timeout_ms) -> queues
SELECT queues FROM bide.clients WHERE greatest(seen_ms, (SELECT since_ms FROM bide.pulse)) + $1::bigint > {now}

-- @old(state, retention_ms, limit) -> id, flags
SELECT id, flags FROM bide.jobs WHERE state = $1::bigint AND state >= 2 AND finished_ms <= {now} - $2::bigint
ORDER BY finished_ms LIMIT $3::bigint FOR UPDATE SKIP LOCKED

-- @old_counters() -> slot, accepted, done, cancelled, deleted, purged, forgotten, lost, timed_out, crashed
SELECT slot, accepted, done, cancelled, deleted, purged, forgotten, lost, timed_out, crashed FROM bide.counters
WHERE slot <> 0 AND touched_ms < {now} - 600000 LIMIT 100 FOR UPDATE SKIP LOCKED

-- @remove_counters(slot[])
DELETE FROM bide.counters WHERE slot = ANY($1::bigint[])

-- @find(id[]) -> now, job
SELECT {now}, {job} FROM bide.jobs WHERE id = ANY($1::uuid[])

-- @waiting(queue, limit) -> id, flags
SELECT id, flags FROM bide.jobs WHERE queue = $1::text AND state = 0 LIMIT $2::bigint FOR UPDATE SKIP LOCKED

-- @pause(queue, paused)
INSERT INTO bide.queues VALUES ($1::text, $2::bigint <> 0) ON CONFLICT (name) DO UPDATE SET paused = excluded.paused

-- @paused() -> queue
SELECT name FROM bide.queues WHERE paused

-- @queues() -> queue, scheduled, ready, running, done, dead, oldest_ready_ms or null
SELECT queue, count(*) FILTER (WHERE state = 0 AND due_ms > {now}), count(*) FILTER (WHERE state = 0 AND due_ms <= {now}),
       count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3),
       min(due_ms) FILTER (WHERE state = 0 AND due_ms <= {now})
FROM bide.jobs GROUP BY queue ORDER BY queue

-- @audit() -> accepted, done, cancelled, deleted, purged, forgotten, lost, timed_out, crashed, then jobs that are scheduled, ready,
--             running, done, dead
-- One statement: one moment.
SELECT counted.*, jobs.* FROM
  (SELECT coalesce(sum(accepted), 0)::bigint, coalesce(sum(done), 0)::bigint, coalesce(sum(cancelled), 0)::bigint,
          coalesce(sum(deleted), 0)::bigint, coalesce(sum(purged), 0)::bigint, coalesce(sum(forgotten), 0)::bigint,
          coalesce(sum(lost), 0)::bigint, coalesce(sum(timed_out), 0)::bigint, coalesce(sum(crashed), 0)::bigint
   FROM bide.counters) AS counted,
  (SELECT count(*) FILTER (WHERE state = 0 AND due_ms > {now}), count(*) FILTER (WHERE state = 0 AND due_ms <= {now}),
          count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3)
   FROM bide.jobs) AS jobs

-- @list_due(states, queue or empty, kind or empty, since_ms, until_ms, error or empty, after_ms, after_id, limit) -> now, job
-- states: 1 scheduled, 2 ready, 4 running, 8 done, 16 dead. Next due first.
SELECT {now}, {job} FROM bide.jobs
WHERE (CASE state WHEN 0 THEN CASE WHEN due_ms <= {now} THEN 2 ELSE 1 END WHEN 1 THEN 4 WHEN 2 THEN 8 ELSE 16 END & $1::bigint) <> 0
  AND ($2::text = '' OR queue = $2::text) AND ($3::text = '' OR kind = $3::text)
  AND coalesce(finished_ms, due_ms) BETWEEN $4::bigint AND $5::bigint
  AND ($6::bytea = '' OR position($6::bytea IN history) > 0)
  AND (coalesce(finished_ms, due_ms), id) > ($7::bigint, $8::uuid)
ORDER BY coalesce(finished_ms, due_ms), id LIMIT $9::bigint

-- @list_newest(states, queue or empty, kind or empty, since_ms, until_ms, error or empty, after_ms, after_id, limit) -> now, job
-- The same of done and dead jobs, newest first.
SELECT {now}, {job} FROM bide.jobs
WHERE state >= 2 AND (CASE state WHEN 2 THEN 8 ELSE 16 END & $1::bigint) <> 0
  AND ($2::text = '' OR queue = $2::text) AND ($3::text = '' OR kind = $3::text)
  AND finished_ms BETWEEN $4::bigint AND $5::bigint
  AND ($6::bytea = '' OR position($6::bytea IN history) > 0)
  AND (finished_ms, id) < ($7::bigint, $8::uuid)
ORDER BY finished_ms DESC, id DESC LIMIT $9::bigint

-- ---- Bodies of jobs that are elsewhere.

-- @has_bodies() -> 0 or 1
SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname || '.' || tablename = 'bide.body_sets'

-- @add_body_set(set)
INSERT INTO bide.body_sets VALUES ($1::bigint, {now})

-- @has_body_set(set) -> 0 or 1
SELECT count(*) FROM bide.body_sets WHERE body_set = $1::bigint

-- @insert_bodies(set[], id[], job[], body[])
INSERT INTO bide.bodies (body_set, id, job, body) SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::bytea[])

-- @read_bodies(id[], set) -> id, body
SELECT id, body FROM bide.bodies WHERE id = ANY($1::uuid[]) AND body_set = $2::bigint

-- @remove_bodies(id[], set)
DELETE FROM bide.bodies WHERE id = ANY($1::uuid[]) AND body_set = $2::bigint

-- @list_bodies(set, after, before, limit) -> id, job
SELECT id, job FROM bide.bodies WHERE body_set = $1::bigint AND id > $2::uuid AND id < $3::uuid ORDER BY id LIMIT $4::bigint
