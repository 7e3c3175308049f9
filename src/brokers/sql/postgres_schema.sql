-- Version 1. Run by bide under a lock, or by a DBA (`bide sql plan`). Everything is in one schema.

CREATE SCHEMA IF NOT EXISTS bide;

CREATE TABLE bide.meta (version integer NOT NULL);

-- A job and what became of it. Times are milliseconds since 1970 by this server's clock.
CREATE TABLE bide.jobs (
  seq bigint GENERATED ALWAYS AS IDENTITY,      -- order of arrival
  due_ms bigint NOT NULL,
  client bigint NOT NULL DEFAULT 0,             -- running: the process that holds the lease
  deadline_ms bigint NOT NULL DEFAULT 0,        -- running: the lease runs out
  limit_ms bigint NOT NULL DEFAULT 0,           -- running: the time limit of the attempt
  time_limit_ms bigint NOT NULL,
  expires_ms bigint,
  finished_ms bigint,                           -- done or dead since
  grants integer NOT NULL DEFAULT 0,            -- the token of a lease is seq * 2^20 + grants
  lease_ms integer NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  failed integer NOT NULL DEFAULT 0,
  timed_out integer NOT NULL DEFAULT 0,
  lost integer NOT NULL DEFAULT 0,
  crashed integer NOT NULL DEFAULT 0,
  state smallint NOT NULL DEFAULT 0,            -- 0 waiting, 1 running, 2 done, 3 dead
  priority smallint NOT NULL DEFAULT 0,
  flags smallint NOT NULL DEFAULT 0,            -- 1 outlives its process, 2 delivered, 4 cancel asked for, 8 watched
  unheard smallint NOT NULL DEFAULT 0,
  settled smallint NOT NULL DEFAULT -1,         -- how the worker settled the last lease: 0 done, 1 retry, 2 dead, 3 returned
  dead_reason smallint NOT NULL DEFAULT -1,     -- 0 exhausted, 1 rejected, 2 expired, 3 poison, 4 damaged
  id uuid NOT NULL,
  queue text NOT NULL,
  kind text NOT NULL,
  retry text NOT NULL,                          -- as in exponential(1s,2,1h,x25)
  content_type bytea,
  headers bytea,                                -- name, tab, value, newline, for each
  unique_key bytea,
  worker bytea,
  note bytea,
  history bytea,
  result bytea,
  result_type bytea,
  body bytea NOT NULL,
  PRIMARY KEY (id)
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.2);
ALTER TABLE bide.jobs ALTER COLUMN body SET STORAGE EXTERNAL;

-- The pick: one range for each priority of a queue.
CREATE INDEX jobs_waiting ON bide.jobs (queue, priority, due_ms, seq) WHERE state = 0;
CREATE INDEX jobs_running ON bide.jobs (client) WHERE state = 1;
CREATE INDEX jobs_finished ON bide.jobs (state, finished_ms) WHERE state >= 2;
CREATE UNIQUE INDEX jobs_unique_key ON bide.jobs (unique_key) WHERE unique_key IS NOT NULL AND state < 2;

CREATE TABLE bide.queues (name text PRIMARY KEY, paused boolean NOT NULL);

-- Processes, kept alive by themselves. queues: one line for each subscription.
CREATE TABLE bide.clients (
  client bigint PRIMARY KEY,
  seen_ms bigint NOT NULL,
  queues bytea NOT NULL
) WITH (fillfactor = 50);

-- When anybody was heard of, and since when without a break.
CREATE TABLE bide.pulse (one smallint PRIMARY KEY, seen_ms bigint NOT NULL, since_ms bigint NOT NULL) WITH (fillfactor = 20);

-- What was ever accepted and what became of it, for `bide audit`. A row for each connection, so that none waits for another.
CREATE TABLE bide.counters (
  slot bigint PRIMARY KEY,
  touched_ms bigint NOT NULL,
  accepted bigint NOT NULL, done bigint NOT NULL,
  cancelled bigint NOT NULL, deleted bigint NOT NULL, purged bigint NOT NULL, forgotten bigint NOT NULL,
  lost bigint NOT NULL, timed_out bigint NOT NULL, crashed bigint NOT NULL
) WITH (fillfactor = 50);

-- Enqueues a job from any language, in the caller's transaction: SELECT bide.enqueue('resize', '{"width": 640}').
CREATE FUNCTION bide.enqueue(
  kind text, body text DEFAULT '', queue text DEFAULT 'default', delay interval DEFAULT '0', due timestamptz DEFAULT NULL,
  priority integer DEFAULT 0, retry text DEFAULT 'exponential', unique_key text DEFAULT NULL, id uuid DEFAULT NULL,
  time_limit interval DEFAULT '30 minutes', content_type text DEFAULT 'application/json', headers text DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql AS $function$
DECLARE
  now_ms bigint := floor(extract(epoch FROM now()) * 1000);
  at_ms bigint := CASE WHEN enqueue.due IS NULL AND enqueue.delay <= '0' THEN now_ms
                       ELSE ceil(extract(epoch FROM coalesce(enqueue.due, now() + enqueue.delay)) * 1000) END;
  made uuid := coalesce(enqueue.id, gen_random_uuid());
  holder uuid;
BEGIN
  IF enqueue.kind !~ '^[A-Za-z0-9_-][A-Za-z0-9_.:-]{0,127}$' THEN RAISE 'invalid kind %', quote_literal(enqueue.kind) USING ERRCODE = '22023'; END IF;
  IF enqueue.queue !~ '^[A-Za-z0-9_-][A-Za-z0-9_.:-]{0,127}$' THEN RAISE 'invalid queue name %', quote_literal(enqueue.queue) USING ERRCODE = '22023'; END IF;
  IF enqueue.priority NOT BETWEEN -100 AND 100 THEN RAISE 'priority % is out of range; allowed: -100 to 100', enqueue.priority USING ERRCODE = '22023'; END IF;
  IF enqueue.retry !~ '^(none|(exponential|steps|fixed)(\(.*\))?)$' THEN RAISE 'invalid retry policy %', quote_literal(enqueue.retry) USING ERRCODE = '22023'; END IF;
  INSERT INTO bide.jobs (id, queue, kind, retry, due_ms, time_limit_ms, priority, content_type, headers, unique_key, body)
  VALUES (made, enqueue.queue, enqueue.kind, enqueue.retry, greatest(at_ms, now_ms), (extract(epoch FROM enqueue.time_limit) * 1000)::bigint,
          enqueue.priority, convert_to(enqueue.content_type, 'UTF8'), convert_to(enqueue.headers, 'UTF8'),
          convert_to(nullif(enqueue.unique_key, ''), 'UTF8'), convert_to(enqueue.body, 'UTF8'))
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT j.id INTO holder FROM bide.jobs j WHERE j.id = made;
    IF holder IS NULL THEN
      RAISE 'the unique key % is held by a live job', quote_literal(enqueue.unique_key) USING ERRCODE = '23505';
    END IF;
    RETURN made;
  END IF;
  INSERT INTO bide.counters AS c VALUES (pg_backend_pid(), now_ms, 1, 0, 0, 0, 0, 0, 0, 0, 0)
  ON CONFLICT (slot) DO UPDATE SET touched_ms = excluded.touched_ms, accepted = c.accepted + 1;
  PERFORM pg_notify({channel}, 'q ' || greatest(at_ms - now_ms, 0) || ' ' || enqueue.queue);
  RETURN made;
END $function$;

INSERT INTO bide.meta VALUES (1);
