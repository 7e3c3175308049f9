-- Bodies of jobs that are elsewhere (redis://...?bodies=postgres://...). Run by bide under a lock, or by a DBA
-- (`bide sql plan --bodies`).

CREATE SCHEMA IF NOT EXISTS bide;

-- A body never changes. Ids are in the order of writing.
CREATE TABLE IF NOT EXISTS bide.bodies (
  body_set bigint NOT NULL,
  id uuid NOT NULL,
  job uuid NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (body_set, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE bide.bodies ALTER COLUMN body SET STORAGE EXTERNAL;

-- One for each place that has its bodies here. Last: whoever finds this table finds both.
CREATE TABLE IF NOT EXISTS bide.body_sets (body_set bigint PRIMARY KEY, made_ms bigint NOT NULL);
