// bide sql: the tables that bide needs in a PostgreSQL or MariaDB database.

#include <string>
#include <string_view>
#include <utility>

#include "brokers/sql/sql_settings.h"
#include "brokers/sql/sql_store.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/json.h"
#include "cli/open_client.h"
#include "cli/output.h"

namespace bide::cli {

namespace {

namespace sql = brokers::sql;

sql::SqlSettings sql_settings(const Invocation& call) {
  const std::string url = url_of(call);
  const std::string_view scheme = std::string_view(url).substr(0, url.find(':'));
  const bool postgres = scheme == "postgres" || scheme == "postgresql";
  if (!postgres && scheme != "mysql" && scheme != "mariadb") {
    throw Failure{kConfiguration, "bide sql needs a database: --url postgres://user@host:5432/database or mysql://user@host:3306/database"};
  }
  const Result<sql::SqlSettings> settings =
      sql::parse_sql_url(postgres ? sql::Dialect::kPostgres : sql::Dialect::kMysql, std::string_view(url).substr(scheme.size() + 1));
  if (!settings) throw Failure{kConfiguration, settings.error().message};
  return *settings;
}

std::unique_ptr<sql::SqlConnection> connect_or_fail(const sql::SqlSettings& settings) {
  auto connection = sql::connect_to(settings);
  if (!connection) fail(connection.error());
  return std::move(*connection);
}

int plan_sql(const Invocation& call) {
  const sql::SqlSettings settings = sql_settings(call);
  const auto connection = connect_or_fail(settings);
  const auto script = sql::plan_schema(*connection, settings);
  if (!script) fail(script.error());
  print(call, JsonObject().add("schema", settings.schema).add("script", *script),
        script->empty() ? "-- nothing to do: the tables are there\n" : *script);
  return kOk;
}

int apply_sql(const Invocation& call) {
  const sql::SqlSettings settings = sql_settings(call);
  const auto connection = connect_or_fail(settings);
  const auto script = sql::plan_schema(*connection, settings);
  if (!script) fail(script.error());
  if (!script->empty()) {
    if (const Status applied = sql::apply_schema(*connection, settings); !applied) fail(applied.error());
  }
  print(call, JsonObject().add("schema", settings.schema).add("changed", !script->empty()),
        script->empty() ? "the tables are there\n" : "the tables are made\n");
  return kOk;
}

}  // namespace

std::vector<Command> sql_commands() {
  return {
      {.path = "sql plan",
       .summary = "Print the SQL that makes the tables bide needs in a database",
       .details =
           "Nothing is changed. For people whose DBA runs the DDL: run what is printed, and give the processes\n"
           "schema_changes=no in their URL and a role that may only read and write (docs/sql.md).",
       .flags = {kUrlFlag, kJsonFlag},
       .run = plan_sql},
      {.path = "sql apply",
       .summary = "Make the tables that bide needs in a database",
       .details = "Under a lock: any number of processes may do so at once. Processes do it by themselves unless\nschema_changes=no is in their URL.",
       .flags = {kUrlFlag, kJsonFlag},
       .run = apply_sql},
  };
}

}  // namespace bide::cli
