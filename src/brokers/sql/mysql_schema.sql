-- Version 1, for MariaDB 10.6 or newer. Run by bide under a lock, or by a DBA (`bide sql plan`). Names begin with the prefix
-- that was configured. See postgres_schema.sql for what the columns mean.

CREATE TABLE IF NOT EXISTS bide.jobs (
  seq BIGINT NOT NULL AUTO_INCREMENT,
  due_ms BIGINT NOT NULL,
  client BIGINT NOT NULL DEFAULT 0,
  deadline_ms BIGINT NOT NULL DEFAULT 0,
  limit_ms BIGINT NOT NULL DEFAULT 0,
  time_limit_ms BIGINT NOT NULL,
  expires_ms BIGINT,
  finished_ms BIGINT,
  grants INT NOT NULL DEFAULT 0,
  lease_ms INT NOT NULL DEFAULT 0,
  attempts INT NOT NULL DEFAULT 0,
  failed INT NOT NULL DEFAULT 0,
  timed_out INT NOT NULL DEFAULT 0,
  lost INT NOT NULL DEFAULT 0,
  crashed INT NOT NULL DEFAULT 0,
  state TINYINT NOT NULL DEFAULT 0,
  priority SMALLINT NOT NULL DEFAULT 0,
  flags SMALLINT NOT NULL DEFAULT 0,
  unheard SMALLINT NOT NULL DEFAULT 0,
  settled TINYINT NOT NULL DEFAULT -1,
  dead_reason TINYINT NOT NULL DEFAULT -1,
  id BINARY(16) NOT NULL,
  queue VARBINARY(128) NOT NULL,
  kind VARBINARY(128) NOT NULL,
  retry VARBINARY(4000) NOT NULL,
  content_type VARBINARY(255),
  headers MEDIUMBLOB,
  unique_key VARBINARY(512),
  worker BLOB,
  note BLOB,
  history BLOB,
  result LONGBLOB,
  result_type VARBINARY(255),
  body LONGBLOB NOT NULL,
  -- There are no partial indices: what only live or waiting jobs have is null in the others.
  held_key VARBINARY(512) AS (IF(state < 2, unique_key, NULL)) VIRTUAL,
  PRIMARY KEY (seq),
  UNIQUE KEY (id),
  UNIQUE KEY (held_key),
  KEY jobs_waiting (queue, state, priority, due_ms, seq),
  KEY jobs_running (state, client),
  KEY jobs_finished (state, finished_ms)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS bide.queues (
  name VARBINARY(128) NOT NULL PRIMARY KEY, paused TINYINT NOT NULL
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS bide.clients (client BIGINT NOT NULL PRIMARY KEY, seen_ms BIGINT NOT NULL, queues MEDIUMBLOB NOT NULL) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS bide.pulse (one TINYINT NOT NULL PRIMARY KEY, seen_ms BIGINT NOT NULL, since_ms BIGINT NOT NULL) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS bide.counters (
  slot BIGINT NOT NULL PRIMARY KEY,
  touched_ms BIGINT NOT NULL,
  accepted BIGINT NOT NULL, done BIGINT NOT NULL,
  cancelled BIGINT NOT NULL, deleted BIGINT NOT NULL, purged BIGINT NOT NULL, forgotten BIGINT NOT NULL,
  lost BIGINT NOT NULL, timed_out BIGINT NOT NULL, crashed BIGINT NOT NULL
) ENGINE = InnoDB;

-- There is no LISTEN: notices are rows, written with what they tell of. Who waits sleeps in a statement that looks for newer
-- ones first; who tells ends that statement (KILL QUERY) after its commit. listeners: the names of locks that they hold.
CREATE TABLE IF NOT EXISTS bide.notices (
  seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, told_ms BIGINT NOT NULL, due_ms BIGINT,
  front VARBINARY(200) NOT NULL, back VARBINARY(200) NOT NULL, KEY (told_ms)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS bide.listeners (name VARBINARY(64) NOT NULL PRIMARY KEY, seen_ms BIGINT NOT NULL) ENGINE = InnoDB;

-- Last: whoever finds this table finds all of them.
CREATE TABLE IF NOT EXISTS bide.meta ENGINE = InnoDB AS SELECT 1 AS version;
