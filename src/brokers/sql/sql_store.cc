#include "brokers/sql/sql_store.h"

#include <utility>

#include "brokers/sql/sql_session.h"
#include "brokers/sql/statements.h"

namespace bide::brokers::sql {

Result<std::unique_ptr<SqlConnection>> connect_to(const SqlSettings& settings) {
  return settings.dialect == Dialect::kPostgres ? connect_postgres(settings) : connect_mysql(settings);
}

Result<std::string> plan_schema(SqlConnection& connection, const SqlSettings& settings) {
  connection.begin();
  connection.add("has_schema", {Value::text(settings.dialect == Dialect::kPostgres ? settings.schema : settings.schema + "_meta")});
  const auto there = connection.commit();
  if (!there) return connection.rollback(), there.error();
  if (there->back().integer(0, 0) == 0) return schema_of(settings);
  connection.begin();
  connection.add("version", {});
  const auto found = connection.commit();
  if (!found) return connection.rollback(), found.error();
  const std::int64_t version = found->back().size() == 0 ? 0 : found->back().integer(0, 0);
  if (version > kSchemaVersion) {
    return Error{ErrorCode::kNewerVersion, place_of(settings) + ": the tables of " + settings.schema + " have version " +
                                               std::to_string(version) + "; this bide knows " + std::to_string(kSchemaVersion) +
                                               ": upgrade it"};
  }
  if (version == 0) {
    return Error{ErrorCode::kDamaged, place_of(settings) + ": the tables of " + settings.schema +
                                          " were not finished; drop them and run `bide sql apply`"};
  }
  return std::string();
}

Status apply_schema(SqlConnection& connection, const SqlSettings& settings) {
  return connection.execute_locked("bide schema " + settings.schema, [&]() -> Status {
    const auto script = plan_schema(connection, settings);
    if (!script) return script.error();
    return script->empty() ? Status() : connection.execute(*script);
  });
}

Result<std::unique_ptr<database::Session>> SqlStore::connect() {
  auto connection = connect_to(settings_);
  if (!connection) return connection.error();
  {
    const std::lock_guard lock(mutex_);
    if (!has_schema_) {
      const auto script = plan_schema(**connection, settings_);
      if (!script) return script.error();
      if (!script->empty() && !settings_.creates_schema) {
        return Error{ErrorCode::kNotFound, place_of(settings_) + ": the tables of " + settings_.schema +
                                               " are not there; run `bide sql apply`, or leave out schema_changes=no"};
      }
      if (!script->empty()) {
        if (Status applied = apply_schema(**connection, settings_); !applied) return applied.error();
      }
      has_schema_ = true;
    }
  }
  return std::unique_ptr<database::Session>(std::make_unique<SqlSession>(std::move(*connection), settings_));
}

Capabilities SqlStore::capabilities() const {
  Capabilities all;
  all.save_body = true;
  all.carries_past = true;
  return all;
}

}  // namespace bide::brokers::sql
