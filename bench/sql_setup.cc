#include "bench/sql_setup.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "brokers/sql/sql_connection.h"
#include "brokers/sql/sql_store.h"

namespace bide::bench {

namespace {

using namespace brokers::sql;
using std::chrono::steady_clock;

constexpr std::string_view kSqlSchema = "bide_bench";
constexpr std::uint64_t kRowsAStatement = 1000;

class BareTable {
 public:
  static Result<std::shared_ptr<BareTable>> open(const SqlSettings& settings) {
    auto connection = connect_to(settings);
    if (!connection) return connection.error();
    std::shared_ptr<BareTable> table(new BareTable(std::move(*connection)));
    const bool postgres = settings.dialect == Dialect::kPostgres;
    const std::string key = postgres ? "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY" : "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY";
    const Status made = table->connection_->execute(
        "DROP TABLE IF EXISTS bide_bench_bare; CREATE TABLE bide_bench_bare (seq " + key + ", queue " +
        (postgres ? "text" : "varbinary(128)") + " NOT NULL, state smallint NOT NULL, due_ms bigint NOT NULL, body " +
        (postgres ? "bytea" : "longblob") + " NOT NULL); CREATE INDEX bide_bench_bare_due ON bide_bench_bare (queue, state, due_ms)");
    if (!made) return made.error();
    return table;
  }

  // Jobs a second.
  Result<double> run(std::uint64_t jobs) {
    const auto start = steady_clock::now();
    for (std::uint64_t sent = 0; sent < jobs;) {
      const std::uint64_t now = std::min(kRowsAStatement, jobs - sent);
      if (Status inserted = insert(now); !inserted) return inserted.error();
      sent += now;
    }
    const double seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
    if (Status emptied = connection_->execute("TRUNCATE TABLE bide_bench_bare"); !emptied) return emptied.error();
    return static_cast<double>(jobs) / seconds;
  }

  Result<std::vector<double>> single_us(int jobs) {
    std::vector<double> times;
    for (int i = 0; i < jobs; ++i) {
      const auto start = steady_clock::now();
      if (Status inserted = insert(1); !inserted) return inserted.error();
      times.push_back(std::chrono::duration<double, std::micro>(steady_clock::now() - start).count());
    }
    return times;
  }

 private:
  explicit BareTable(std::unique_ptr<SqlConnection> connection) : connection_(std::move(connection)) {}

  Status insert(std::uint64_t rows) {
    std::string statement = "INSERT INTO bide_bench_bare (queue, state, due_ms, body) VALUES ";
    const std::string body(200, 'x');
    for (std::uint64_t i = 0; i < rows; ++i) {
      statement += (i == 0 ? "('burst', 0, " : ",('burst', 0, ") + std::to_string(++last_) + ", '" + body + "')";
    }
    return connection_->execute(statement);
  }

  const std::unique_ptr<SqlConnection> connection_;
  std::uint64_t last_ = 0;
};

Status remove_tables(const SqlSettings& settings) {
  const auto connection = connect_to(settings);
  if (!connection) return connection.error();
  std::string script = "DROP TABLE IF EXISTS bide_bench_bare;";
  if (settings.dialect == Dialect::kPostgres) {
    script += "DROP SCHEMA IF EXISTS " + settings.schema + " CASCADE";
  } else {
    for (const char* const table : {"meta", "jobs", "queues", "clients", "pulse", "counters", "notices", "listeners"}) {
      script += "DROP TABLE IF EXISTS " + settings.schema + "_" + table + ";";
    }
  }
  return (*connection)->execute(script);
}

}  // namespace

Result<BrokerSetup> sql_setup(std::string_view url, std::string_view rest, bool postgres) {
  Result<SqlSettings> settings = parse_sql_url(postgres ? Dialect::kPostgres : Dialect::kMysql, rest);
  if (!settings) return settings.error();
  settings->schema = kSqlSchema;
  BrokerSetup setup;
  // The last one of two settings counts.
  setup.url = std::string(url) + (url.find('?') == std::string_view::npos ? "?" : "&") + "schema=" + std::string(kSqlSchema);
  if (Status cleaned = remove_tables(*settings); !cleaned) return cleaned.error();
  const auto bare = BareTable::open(*settings);
  if (!bare) return bare.error();
  setup.bare_enqueue_rate = [bare = *bare](std::uint64_t jobs) { return bare->run(jobs); };
  setup.bare_single_us = [bare = *bare](int jobs) { return bare->single_us(jobs); };
  setup.clean_up = [settings = *settings](const std::vector<std::string>&) { return remove_tables(settings); };
  return setup;
}

}  // namespace bide::bench
