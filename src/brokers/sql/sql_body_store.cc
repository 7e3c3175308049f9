#include "brokers/sql/sql_body_store.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "brokers/sql/sql_store.h"
#include "brokers/sql/statements.h"
#include "core/job_ids.h"
#include "platform/random.h"

namespace bide::brokers::sql {

using database::BodyId;
using database::BodySession;
using database::BodySet;
using database::NewBody;
using database::WrittenBody;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kBytesAStatement = 4 << 20;  // Well within what a server takes at once (max_allowed_packet).
constexpr std::chrono::minutes kClockHolds{1};
constexpr int kConflictTries = 10;

std::vector<Value> ids_of(const std::vector<BodyId>& ids) {
  std::vector<Value> list;
  list.reserve(ids.size());
  for (const BodyId& id : ids) list.push_back(Value::id(id));
  return list;
}

class SqlBodySession : public BodySession {
 public:
  explicit SqlBodySession(std::unique_ptr<SqlConnection> connection) : connection_(std::move(connection)) {}

  bool is_broken() const override { return connection_->is_lost(); }
  void interrupt() override { connection_->interrupt(); }

  Status add_set(BodySet set) override {
    const auto added = transact([&] { connection_->add("add_body_set", {Value::integer(set)}); });
    return added ? Status() : added.error();
  }

  Result<bool> has_set(BodySet set) override {
    const auto rows = transact([&] { connection_->add("has_body_set", {Value::integer(set)}); });
    if (!rows) return rows.error();
    return rows->front().integer(0, 0) > 0;
  }

  Result<std::vector<BodyId>> write(BodySet set, const std::vector<NewBody>& bodies, std::int64_t not_before_ms) override {
    const auto now = estimated_now_ms();
    if (!now) return now.error();
    std::vector<BodyId> ids;
    ids.reserve(bodies.size());
    for (std::size_t i = 0; i < bodies.size(); ++i) ids.push_back(ids_.next(std::max(*now, not_before_ms), random_.next()));
    const auto written = transact([&] {
      std::vector<Values> rows;
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        bytes += bodies[i].bytes.size();
        if (bytes > kBytesAStatement && !rows.empty()) {
          connection_->add_each("insert_bodies", std::exchange(rows, {}));
          bytes = bodies[i].bytes.size();
        }
        rows.push_back({Value::integer(set), Value::id(ids[i]), Value::id(bodies[i].job), Value::borrowed(bodies[i].bytes)});
      }
      connection_->add_each("insert_bodies", std::move(rows));
    });
    if (!written) return written.error();
    return ids;
  }

  Result<std::map<BodyId, std::string>> read(BodySet set, const std::vector<BodyId>& ids) override {
    std::map<BodyId, std::string> bodies;
    auto rows = transact([&] { connection_->add_list("read_bodies", ids_of(ids), {Value::integer(set)}); });
    if (!rows) return rows.error();
    Rows& found = rows->front();
    for (std::size_t i = 0; i < found.size(); ++i) bodies.emplace(found.id(i, 0), found.take(i, 1));
    return bodies;
  }

  Status remove(BodySet set, const std::vector<BodyId>& ids) override {
    if (ids.empty()) return {};
    const auto removed = transact([&] { connection_->add_list("remove_bodies", ids_of(ids), {Value::integer(set)}); });
    return removed ? Status() : removed.error();
  }

  Result<std::vector<WrittenBody>> list(BodySet set, BodyId after, std::int64_t before_ms, std::size_t limit) override {
    const auto rows = transact([&] {
      connection_->add("list_bodies", {Value::integer(set), Value::id(after), Value::id(database::least_id(before_ms)),
                                       Value::integer(static_cast<std::int64_t>(limit))});
    });
    if (!rows) return rows.error();
    std::vector<WrittenBody> bodies;
    for (std::size_t i = 0; i < rows->front().size(); ++i) bodies.push_back({rows->front().id(i, 0), rows->front().id(i, 1)});
    return bodies;
  }

  Result<std::int64_t> now_ms() override {
    const auto asked = steady_clock::now();
    const auto rows = transact([&] { connection_->add("now", {}); });
    if (!rows) return rows.error();
    clock_ms_ = rows->front().integer(0, 0);
    clock_read_ = asked;
    return clock_ms_;
  }

 private:
  // Another transaction may be in the way: several processes remove the same orphans.
  template <class Fill>
  Result<std::vector<Rows>> transact(Fill fill) {
    for (int tries = 1;; ++tries) {
      connection_->begin();
      fill();
      auto rows = connection_->commit();
      if (rows) return rows;
      const bool again = connection_->last_failure() == Failure::kConflict;
      connection_->rollback();
      if (!again || tries == kConflictTries) return rows;
    }
  }

  // The server's clock, asked for now and then only.
  Result<std::int64_t> estimated_now_ms() {
    const auto age = steady_clock::now() - clock_read_;
    if (clock_ms_ == 0 || age > kClockHolds) return now_ms();
    return clock_ms_ + std::chrono::duration_cast<Milliseconds>(age).count();
  }

  const std::unique_ptr<SqlConnection> connection_;
  core::JobIdSource ids_;
  platform::SystemRandom random_;
  std::int64_t clock_ms_ = 0;
  steady_clock::time_point clock_read_ = {};
};

}  // namespace

Result<std::string> plan_body_schema(SqlConnection& connection, const SqlSettings& settings) {
  connection.begin();
  connection.add("has_bodies", {});
  const auto there = connection.commit();
  if (!there) return connection.rollback(), there.error();
  return there->back().integer(0, 0) == 0 ? body_schema_of(settings) : std::string();
}

Status apply_body_schema(SqlConnection& connection, const SqlSettings& settings) {
  return connection.execute_locked("bide schema " + settings.schema, [&]() -> Status {
    const auto script = plan_body_schema(connection, settings);
    if (!script) return script.error();
    return script->empty() ? Status() : connection.execute(*script);
  });
}

Result<std::unique_ptr<BodySession>> SqlBodyStore::connect() {
  auto connection = connect_to(settings_);
  if (!connection) return connection.error();
  const std::lock_guard lock(mutex_);
  if (!has_schema_) {
    const auto script = plan_body_schema(**connection, settings_);
    if (!script) return script.error();
    if (!script->empty() && !settings_.creates_schema) {
      return Error{ErrorCode::kNotFound, place() + ": the tables for bodies are not there; run `bide sql apply --bodies`, " +
                                             "or leave out schema_changes=no"};
    }
    if (!script->empty()) {
      if (Status applied = apply_body_schema(**connection, settings_); !applied) return applied.error();
    }
    has_schema_ = true;
  }
  return std::unique_ptr<BodySession>(std::make_unique<SqlBodySession>(std::move(*connection)));
}

}  // namespace bide::brokers::sql
