-- Bodies of jobs that are elsewhere (redis://...?bodies=mysql://...), for MariaDB 10.6 or newer. See postgres_body_schema.sql.

CREATE TABLE IF NOT EXISTS bide.bodies (
  body_set BIGINT NOT NULL,
  id BINARY(16) NOT NULL,
  job BINARY(16) NOT NULL,
  body LONGBLOB NOT NULL,
  PRIMARY KEY (body_set, id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS bide.body_sets (body_set BIGINT NOT NULL PRIMARY KEY, made_ms BIGINT NOT NULL) ENGINE = InnoDB;
