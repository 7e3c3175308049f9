// SqlSettings: what a postgres:// or mysql:// URL says.
//
//   postgres://user:password@host:5432/database?schema=bide
//   mysql://user:password@host:3306/database?prefix=bide_
//   postgres:///database?socket=/var/run/postgresql      the socket's folder (PostgreSQL) or file (MariaDB)
//
// postgresql: and mariadb: mean the same. Parts may be escaped with %XX. The password never appears in an error.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "bide/result.h"

namespace bide::brokers::sql {

enum class Dialect : std::uint8_t { kPostgres, kMysql };

struct SqlSettings {
  Dialect dialect = Dialect::kPostgres;
  std::string host = "127.0.0.1";
  int port = 0;
  std::string socket = {};  // Instead of host and port.
  std::string user = {};
  std::string password = {};
  std::string database = {};

  // Where the tables are: a schema of their own (PostgreSQL), or names with a prefix (MariaDB).
  std::string schema = "bide";
  bool creates_schema = true;  // schema_changes=no: somebody runs `bide sql apply`.

  // A pooler that gives each transaction another connection (PgBouncer, pool_mode=transaction): nothing that belongs to a
  // session is used. Then the server cannot tell us of anything, and it is asked every `longest_wait`.
  bool is_pooled = false;
  Milliseconds longest_wait{1'000};
  Milliseconds patience{60'000};  // How long one answer of the server is waited for.

  // TLS as the client libraries do it: disable, prefer, require, verify-ca, verify-full.
  std::string tls = {};
  std::string tls_ca = {};
  std::string tls_certificate = {};
  std::string tls_key = {};

  Milliseconds client_timeout{5'000};      // A process not heard of for so long has died.
  Milliseconds result_retention{3'600'000};
  Milliseconds dead_retention{0};
};

// `rest` is everything behind the colon of the scheme.
//
// kInvalidArgument: what is wrong, where, and what is allowed; an unknown option with the nearest known one.
Result<SqlSettings> parse_sql_url(Dialect dialect, std::string_view rest);

// "PostgreSQL at host:5432, database shop": for messages, without credentials.
std::string place_of(const SqlSettings& settings);

}  // namespace bide::brokers::sql
