// SqlBodyStore: bodies of jobs that are elsewhere, in a table of a PostgreSQL or MariaDB database.

#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "brokers/database/body_store.h"
#include "brokers/sql/sql_connection.h"
#include "brokers/sql/sql_settings.h"

namespace bide::brokers::sql {

class SqlBodyStore : public database::BodyStore {
 public:
  explicit SqlBodyStore(SqlSettings settings) : settings_(std::move(settings)) {}

  Result<std::unique_ptr<database::BodySession>> connect() override;
  std::string place() const override { return place_of(settings_); }

 private:
  const SqlSettings settings_;
  std::mutex mutex_;  // Guards everything below.
  bool has_schema_ = false;
};

// As plan_schema() and apply_schema(), for the tables of bodies.
Result<std::string> plan_body_schema(SqlConnection& connection, const SqlSettings& settings);
Status apply_body_schema(SqlConnection& connection, const SqlSettings& settings);

}  // namespace bide::brokers::sql
