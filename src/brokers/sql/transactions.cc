// <bide/postgres.h> and <bide/mysql.h>: the steps of a session in somebody else's transaction.

#include <memory>
#include <utility>
#include <vector>

#include "bide/mysql.h"
#include "bide/postgres.h"
#include "brokers/database/endings.h"
#include "brokers/sql/sql_session.h"
#include "core/job_rules.h"
#include "platform/clock.h"

namespace bide::brokers::sql {
namespace {

database::IdSource& shared_ids() {
  static database::IdSource ids;
  return ids;
}

Time wall_now() { return Time(Milliseconds(platform::real_clock().now().wall_us / 1000)); }

Result<Enqueued> enqueue_on(std::unique_ptr<SqlConnection> connection, const SqlSettings& settings, Job job) {
  if (Status valid = core::validate(job, wall_now()); !valid) return valid.error();
  if (Status kept = core::check_kept(job, database::kKept); !kept) return kept.error();
  if (job.id.is_nil()) job.id = shared_ids().next_id();
  SqlSession session(std::move(connection), settings);
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  auto results = session.enqueue(jobs);
  if (!results) return results.error();
  return std::move(results->front());
}

Status settle_on(std::unique_ptr<SqlConnection> connection, const SqlSettings& settings, Settlement settlement) {
  for (const Job& effect : settlement.effects) {
    if (Status valid = core::validate(effect, wall_now()); !valid) return valid;
    if (Status kept = core::check_kept(effect, database::kKept); !kept) return kept;
  }
  SqlSession session(std::move(connection), settings);
  // For those who want to be told of its end.
  const auto info = session.find(settlement.lease.id);
  if (!info) return info.error();
  std::vector<database::Ending> endings;
  endings.push_back(database::settled(std::move(settlement), &info->job, info->attempts, shared_ids()));
  const auto statuses = session.end(endings);
  return statuses ? statuses->front() : Status(statuses.error());
}

SqlSettings settings_of(Dialect dialect, const std::string& schema) {
  SqlSettings settings;
  settings.dialect = dialect;
  settings.schema = schema;
  return settings;
}

}  // namespace
}  // namespace bide::brokers::sql

namespace bide::postgres {

using namespace brokers::sql;

Result<Enqueued> enqueue(pg_conn* connection, Job job, const Options& options) {
  const SqlSettings settings = settings_of(Dialect::kPostgres, options.schema);
  return enqueue_on(borrow_postgres(connection, settings), settings, std::move(job));
}

Status settle(pg_conn* connection, Settlement settlement, const Options& options) {
  const SqlSettings settings = settings_of(Dialect::kPostgres, options.schema);
  return settle_on(borrow_postgres(connection, settings), settings, std::move(settlement));
}

}  // namespace bide::postgres

namespace bide::mysql {

using namespace brokers::sql;

Result<Enqueued> enqueue(st_mysql* connection, Job job, const Options& options) {
  const SqlSettings settings = settings_of(Dialect::kMysql, options.prefix);
  return enqueue_on(borrow_mysql(connection, settings), settings, std::move(job));
}

Status settle(st_mysql* connection, Settlement settlement, const Options& options) {
  const SqlSettings settings = settings_of(Dialect::kMysql, options.prefix);
  return settle_on(borrow_mysql(connection, settings), settings, std::move(settlement));
}

void wake(st_mysql* connection, const Options& options) {
  borrow_mysql(connection, settings_of(Dialect::kMysql, options.prefix))->wake_listeners();
}

}  // namespace bide::mysql
