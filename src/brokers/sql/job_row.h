// JobRow: a job as its row says it, without the body.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bide/inspector.h"
#include "brokers/sql/sql_value.h"

namespace bide::brokers::sql {

enum class RowState : std::uint8_t { kWaiting = 0, kRunning = 1, kDone = 2, kDead = 3 };

struct JobRow {
  static constexpr std::int64_t kOutlives = 1, kDelivered = 2, kCancel = 4, kWatched = 8;  // flags

  std::int64_t seq = 0;
  std::int64_t grants = 0;
  RowState state = RowState::kWaiting;
  std::int64_t due_ms = 0;
  std::int64_t unheard = 0;
  std::int64_t flags = 0;
  std::uint64_t client = 0;
  std::int64_t deadline_ms = 0;
  std::int64_t limit_ms = 0;
  std::optional<std::int64_t> finished_ms = {};
  std::int64_t settled = -1;
  std::int64_t dead_reason = -1;
  std::uint64_t body_bytes = 0;
  // Everything that is shown of it, but state, due and finished, which are above.
  JobInfo info = {};

  // The columns {job}, from this one on.
  static JobRow read(Rows& rows, std::size_t row, std::size_t column);
  // The columns of `change`.
  Values changes() const;

  // Tokens of one job grow, also when it is removed and enqueued again: seq does.
  std::uint64_t token() const { return (static_cast<std::uint64_t>(seq) << 20) + static_cast<std::uint64_t>(grants); }
  bool has(std::int64_t flag) const { return (flags & flag) != 0; }
  JobInfo shown(std::int64_t now_ms) const;
  void charge(Fault fault, std::string error, std::int64_t now_ms);
};

// The columns of `insert`, or of `insert_past` where the job has one. The job must live until the statement has run.
Values inserted(const Job& job);

}  // namespace bide::brokers::sql
