-- The statements of the MariaDB dialect; see postgres_statements.sql for what they do.
--
-- A statement that is given several rows of parameters is run for each of them, in one round trip. $1[] is a list.

-- @has_schema(table) -> 0 or 1
SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = $1

-- @version() -> version
SELECT version FROM bide.meta

-- @insert(id[], queue[], kind[], retry[], due_ms[] or null, delay_ms[], expires_ms[], time_limit_ms[], priority[], content_type[],
--         headers[], unique_key[], body[])
INSERT INTO bide.jobs (id, queue, kind, retry, due_ms, expires_ms, time_limit_ms, priority, content_type, headers, unique_key, body)
VALUES ($1, $2, $3, $4, GREATEST(COALESCE($5, {now} + $6 + SIGN($6)), {now}), $7, $8, $9, $10, $11, $12, $13)

-- @insert_past(id[], queue[], kind[], retry[], due_ms[] or null, delay_ms[], expires_ms[], time_limit_ms[], priority[],
--              content_type[], headers[], unique_key[], body[], state[], finished_ms[] or null, attempts[], failed[], timed_out[],
--              lost[], crashed[], dead_reason[], history[])
INSERT INTO bide.jobs (id, queue, kind, retry, due_ms, expires_ms, time_limit_ms, priority, content_type, headers, unique_key, body,
                       state, finished_ms, attempts, failed, timed_out, lost, crashed, dead_reason, history)
VALUES ($1, $2, $3, $4, COALESCE($5, {now} + $6 + SIGN($6)), $7, $8, $9, $10, $11, $12, $13, $14, IF($14 = 3, COALESCE($15, {now}), NULL), $16,
        $17, $18, $19, $20, $21, $22)

-- @existing(id[]) -> id
SELECT id FROM bide.jobs WHERE id IN ($1[])

-- @holders(unique_key[]) -> unique_key, id
SELECT held_key, id FROM bide.jobs WHERE held_key IN ($1[])

-- @count(slot, accepted, done, cancelled, deleted, purged, forgotten, lost, timed_out, crashed)
INSERT INTO bide.counters VALUES ($1, {now}, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON DUPLICATE KEY UPDATE touched_ms = VALUES(touched_ms), accepted = accepted + VALUES(accepted), done = done + VALUES(done),
  cancelled = cancelled + VALUES(cancelled), deleted = deleted + VALUES(deleted), purged = purged + VALUES(purged),
  forgotten = forgotten + VALUES(forgotten), lost = lost + VALUES(lost), timed_out = timed_out + VALUES(timed_out),
  crashed = crashed + VALUES(crashed)

-- @notify(before[], due_ms[] or null, delay_ms[] or null, behind[])
INSERT INTO bide.notices (told_ms, due_ms, front, back) VALUES ({now}, COALESCE($2, $3 + {now}), $1, $4)

-- @listen(name) -> 1, last notice
-- The lock tells others the number of this connection, and that it lives.
SELECT GET_LOCK($1, 10), COALESCE((SELECT MAX(seq) FROM bide.notices), 0)

-- @add_listener(name)
INSERT INTO bide.listeners VALUES ($1, {now}) ON DUPLICATE KEY UPDATE seen_ms = {now}

-- @sleep(last notice, milliseconds) -> anything
-- Looks first, so that nothing is slept through that was told before.
SELECT IF(EXISTS(SELECT 1 FROM bide.notices WHERE seq > $1), 1, SLEEP($2 / 1000))

-- @notices(last notice) -> seq, notice
SELECT seq, CONCAT(front, COALESCE(GREATEST(due_ms - {now}, 0), ''), back) FROM bide.notices WHERE seq > $1 ORDER BY seq

-- @listeners() -> name, connection or null
SELECT name, IS_USED_LOCK(name) FROM bide.listeners

-- @forget_notices()
DELETE FROM bide.notices WHERE told_ms < {now} - 60000 LIMIT 10000

-- @forget_listener(name[])
DELETE FROM bide.listeners WHERE name = $1

-- @next_priority(queue, below) -> priority
-- The pick takes one priority after another: there is no LATERAL.
SELECT priority FROM bide.jobs FORCE INDEX (jobs_waiting) WHERE queue = $1 AND state = 0 AND priority < $2
  AND NOT EXISTS (SELECT 1 FROM bide.queues WHERE name = $1 AND paused <> 0)
ORDER BY priority DESC LIMIT 1

-- @pick_priority(queue, priority, limit) -> now, job
SELECT {now}, {job} FROM bide.jobs FORCE INDEX (jobs_waiting)
WHERE queue = $1 AND state = 0 AND priority = $2 AND due_ms <= {now}
ORDER BY due_ms, seq LIMIT $3 FOR UPDATE SKIP LOCKED

-- @next_due_of(queue, priority) -> now, due_ms or null
SELECT {now}, (SELECT due_ms FROM bide.jobs FORCE INDEX (jobs_waiting) WHERE queue = $1 AND state = 0 AND priority = $2
               ORDER BY due_ms, seq LIMIT 1)

-- @now() -> now
SELECT {now}

-- @grant(id[], client[], lease_ms[], flags[], worker[])
UPDATE bide.jobs SET state = 1, grants = grants + 1, attempts = attempts + 1, client = $2, lease_ms = $3, deadline_ms = {now} + $3,
  limit_ms = {now} + time_limit_ms, flags = (flags & 8) | $4, settled = -1, worker = $5
WHERE id = $1

-- @bodies(id[]) -> id, body
SELECT id, body FROM bide.jobs WHERE id IN ($1[])

-- @lock(id[]) -> now, job
SELECT {now}, {job} FROM bide.jobs WHERE id IN ($1[]) ORDER BY id FOR UPDATE

-- @lock_free(id[]) -> now, job
-- Of these, the ones that nobody else has locked: a handler's own transaction may have settled its job and go on for a while.
SELECT {now}, {job} FROM bide.jobs WHERE id IN ($1[]) ORDER BY id FOR UPDATE SKIP LOCKED

-- @done(id[], settled[], result[], result_type[])
UPDATE bide.jobs SET state = 2, finished_ms = {now}, settled = $2, result = $3, result_type = $4, client = 0, body = '',
  headers = NULL, content_type = NULL, unique_key = NULL, worker = NULL, note = NULL
WHERE id = $1

-- @change(id[], state[], due_ms[], expires_ms[], finished_ms[], grants[], attempts[], failed[], timed_out[], lost[], crashed[],
--         flags[], unheard[], settled[], dead_reason[], note[], history[])
UPDATE bide.jobs SET state = $2, due_ms = $3, expires_ms = $4, finished_ms = $5, grants = $6, attempts = $7, failed = $8,
  timed_out = $9, lost = $10, crashed = $11, flags = $12, unheard = $13, settled = $14, dead_reason = $15, note = $16,
  history = $17, client = 0, worker = NULL
WHERE id = $1

-- @set_body(id[], body[])
UPDATE bide.jobs SET body = $2 WHERE id = $1

-- @set_flags(id[], flags[])
UPDATE bide.jobs SET flags = flags | $2 WHERE id = $1

-- @extend(id[])
UPDATE bide.jobs SET deadline_ms = {now} + lease_ms, flags = flags | 2 WHERE id IN ($1[])

-- @remove(id[])
DELETE FROM bide.jobs WHERE id IN ($1[])

-- @settings() -> name, value
SELECT 'innodb_flush_log_at_trx_commit', CAST(@@innodb_flush_log_at_trx_commit AS CHAR)
UNION ALL SELECT 'innodb_doublewrite', CAST(@@innodb_doublewrite AS CHAR)
UNION ALL SELECT 'max_allowed_packet', CAST(@@max_allowed_packet AS CHAR)

-- @pulse(client_timeout_ms)
INSERT INTO bide.pulse VALUES (1, {now}, {now})
ON DUPLICATE KEY UPDATE since_ms = IF(ABS({now} - seen_ms) > $1 / 2, {now}, since_ms), seen_ms = {now}

-- @overdue(client_timeout_ms, limit) -> now, is_gone, seen_ms or null, job
SELECT {now}, IF(seen_ms IS NULL OR GREATEST(seen_ms, (SELECT since_ms FROM bide.pulse)) + $1 <= {now}, 1, 0), seen_ms, {job}
FROM bide.jobs FORCE INDEX (jobs_running) LEFT JOIN (SELECT client AS known, seen_ms FROM bide.clients) AS heard_of ON known = client
WHERE state = 1 AND (deadline_ms <= {now} OR limit_ms <= {now}
                     OR ((flags & 1) = 0 AND (seen_ms IS NULL OR GREATEST(seen_ms, (SELECT since_ms FROM bide.pulse)) + $1 <= {now})))
LIMIT $2

-- @clients_seen(client[]) -> client, seen_ms
SELECT client, seen_ms FROM bide.clients WHERE client IN ($1[]) ORDER BY client FOR UPDATE

-- @next_lease_end() -> now, ms or null
SELECT {now}, (SELECT MIN(LEAST(deadline_ms, limit_ms)) FROM bide.jobs FORCE INDEX (jobs_running) WHERE state = 1)

-- @forget_clients(client_timeout_ms)
DELETE FROM bide.clients WHERE GREATEST(seen_ms, (SELECT since_ms FROM bide.pulse)) + $1 <= {now}
  AND NOT EXISTS (SELECT 1 FROM bide.jobs j WHERE j.state = 1 AND j.client = bide.clients.client AND (j.flags & 1) = 0)

-- @know_client(client)
INSERT INTO bide.clients VALUES ($1, {now}, '') ON DUPLICATE KEY UPDATE seen_ms = VALUES(seen_ms)

-- @keep_alive(client, queues)
INSERT INTO bide.clients VALUES ($1, {now}, $2) ON DUPLICATE KEY UPDATE seen_ms = VALUES(seen_ms), queues = VALUES(queues)

-- @client_leases(client) -> now, job
SELECT {now}, {job} FROM bide.jobs FORCE INDEX (jobs_running) WHERE state = 1 AND client = $1 FOR UPDATE

-- @remove_client(client)
DELETE FROM bide.clients WHERE client = $1

-- @client_queues(client_timeout_ms) -> queues
SELECT queues FROM bide.clients WHERE GREATEST(seen_ms, (SELECT since_ms FROM bide.pulse)) + $1 > {now}

-- @old(state, retention_ms, limit) -> id, flags
SELECT id, flags FROM bide.jobs FORCE INDEX (jobs_finished) WHERE state = $1 AND finished_ms <= {now} - $2
ORDER BY finished_ms LIMIT $3 FOR UPDATE SKIP LOCKED

-- @old_counters() -> slot, accepted, done, cancelled, deleted, purged, forgotten, lost, timed_out, crashed
SELECT slot, accepted, done, cancelled, deleted, purged, forgotten, lost, timed_out, crashed FROM bide.counters
WHERE slot <> 0 AND touched_ms < {now} - 600000 LIMIT 100 FOR UPDATE SKIP LOCKED

-- @remove_counters(slot[])
DELETE FROM bide.counters WHERE slot IN ($1[])

-- @find(id[]) -> now, job
SELECT {now}, {job} FROM bide.jobs WHERE id IN ($1[])

-- @waiting(queue, limit) -> id, flags
SELECT id, flags FROM bide.jobs FORCE INDEX (jobs_waiting) WHERE queue = $1 AND state = 0 LIMIT $2 FOR UPDATE SKIP LOCKED

-- @pause(queue, paused)
INSERT INTO bide.queues VALUES ($1, $2) ON DUPLICATE KEY UPDATE paused = VALUES(paused)

-- @paused() -> queue
SELECT name FROM bide.queues WHERE paused <> 0

-- @queues() -> queue, scheduled, ready, running, done, dead, oldest_ready_ms or null
SELECT queue, COUNT(IF(state = 0 AND due_ms > {now}, 1, NULL)), COUNT(IF(state = 0 AND due_ms <= {now}, 1, NULL)),
       COUNT(IF(state = 1, 1, NULL)), COUNT(IF(state = 2, 1, NULL)), COUNT(IF(state = 3, 1, NULL)),
       MIN(IF(state = 0 AND due_ms <= {now}, due_ms, NULL))
FROM bide.jobs GROUP BY queue ORDER BY queue

-- @audit() -> accepted, done, cancelled, deleted, purged, forgotten, lost, timed_out, crashed, then jobs that are scheduled, ready,
--             running, done, dead
SELECT counted.*, counts.* FROM
  (SELECT CAST(COALESCE(SUM(accepted), 0) AS SIGNED), CAST(COALESCE(SUM(done), 0) AS SIGNED),
          CAST(COALESCE(SUM(cancelled), 0) AS SIGNED), CAST(COALESCE(SUM(deleted), 0) AS SIGNED),
          CAST(COALESCE(SUM(purged), 0) AS SIGNED), CAST(COALESCE(SUM(forgotten), 0) AS SIGNED),
          CAST(COALESCE(SUM(lost), 0) AS SIGNED), CAST(COALESCE(SUM(timed_out), 0) AS SIGNED),
          CAST(COALESCE(SUM(crashed), 0) AS SIGNED)
   FROM bide.counters) AS counted,
  (SELECT COUNT(IF(state = 0 AND due_ms > {now}, 1, NULL)), COUNT(IF(state = 0 AND due_ms <= {now}, 1, NULL)),
          COUNT(IF(state = 1, 1, NULL)), COUNT(IF(state = 2, 1, NULL)), COUNT(IF(state = 3, 1, NULL))
   FROM bide.jobs) AS counts

-- @list_due(states, queue or empty, kind or empty, since_ms, until_ms, error or empty, after_ms, after_id, limit) -> now, job
SELECT {now}, {job} FROM bide.jobs
WHERE ((CASE state WHEN 0 THEN IF(due_ms <= {now}, 2, 1) WHEN 1 THEN 4 WHEN 2 THEN 8 ELSE 16 END) & $1) <> 0
  AND ($2 = '' OR queue = $2) AND ($3 = '' OR kind = $3)
  AND COALESCE(finished_ms, due_ms) BETWEEN $4 AND $5
  AND ($6 = '' OR LOCATE($6, history) > 0)
  AND (COALESCE(finished_ms, due_ms) > $7 OR (COALESCE(finished_ms, due_ms) = $7 AND id > $8))
ORDER BY COALESCE(finished_ms, due_ms), id LIMIT $9

-- @list_newest(states, queue or empty, kind or empty, since_ms, until_ms, error or empty, after_ms, after_id, limit) -> now, job
SELECT {now}, {job} FROM bide.jobs FORCE INDEX (jobs_finished)
WHERE state >= 2 AND ((CASE state WHEN 2 THEN 8 ELSE 16 END) & $1) <> 0
  AND ($2 = '' OR queue = $2) AND ($3 = '' OR kind = $3)
  AND finished_ms BETWEEN $4 AND $5
  AND ($6 = '' OR LOCATE($6, history) > 0)
  AND (finished_ms < $7 OR (finished_ms = $7 AND id < $8))
ORDER BY finished_ms DESC, id DESC LIMIT $9

-- @has_bodies() -> 0 or 1
SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'bide.body_sets'

-- @add_body_set(set)
INSERT INTO bide.body_sets VALUES ($1, {now})

-- @has_body_set(set) -> 0 or 1
SELECT COUNT(*) FROM bide.body_sets WHERE body_set = $1

-- @insert_bodies(set[], id[], job[], body[])
INSERT INTO bide.bodies (body_set, id, job, body) VALUES ($1, $2, $3, $4)

-- @read_bodies(id[], set) -> id, body
SELECT id, body FROM bide.bodies WHERE id IN ($1[]) AND body_set = $2

-- @remove_bodies(id[], set)
DELETE FROM bide.bodies WHERE id IN ($1[]) AND body_set = $2

-- @list_bodies(set, after, before, limit) -> id, job
SELECT id, job FROM bide.bodies WHERE body_set = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4
