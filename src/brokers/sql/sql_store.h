// SqlStore: jobs in the tables of a PostgreSQL or MariaDB database.

#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "brokers/database/job_store.h"
#include "brokers/sql/sql_connection.h"
#include "brokers/sql/sql_settings.h"

namespace bide::brokers::sql {

class SqlStore : public database::JobStore {
 public:
  explicit SqlStore(SqlSettings settings) : settings_(std::move(settings)) {}

  Result<std::unique_ptr<database::Session>> connect() override;
  Capabilities capabilities() const override;

 private:
  const SqlSettings settings_;
  std::mutex mutex_;  // Guards everything below.
  bool has_schema_ = false;
};

// A connection without anything of ours around it.
Result<std::unique_ptr<SqlConnection>> connect_to(const SqlSettings& settings);

// What has to be run for this version of bide, empty when nothing; and running it, under a lock, so that many processes may
// start at once.
//
// kNewerVersion: the tables belong to a newer bide.
Result<std::string> plan_schema(SqlConnection& connection, const SqlSettings& settings);
Status apply_schema(SqlConnection& connection, const SqlSettings& settings);

}  // namespace bide::brokers::sql
