// Connections: those that are open, each from its start to its close.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "server/http/limits.h"
#include "server/http/memory_budget.h"

namespace bide::server {

class Session;

class Connections {
 public:
  void add(Session& session);
  void remove(Session& session);

  std::size_t count() const;
  std::vector<std::shared_ptr<Session>> all() const;
  // Those whose deadline is over.
  std::vector<std::shared_ptr<Session>> overdue(std::chrono::steady_clock::time_point now) const;
  // Ends connections that hold memory while they wait for their client, in the order of memory_budget.h, until `missing`
  // bytes of the share are expected back. False: none was ended, because that many cannot be had.
  bool make_room(const MemoryClaim& claim, std::uint64_t missing, std::uint64_t fair_part, const HttpLimits& limits) const;
  // A slot for one more. When as many are open as may be: evicts some whose clients are slow to do their part, those of
  // anonymous callers first, then those of the caller that has the most. False: there is none.
  bool make_slot(const HttpLimits& limits);
  // One is to be closed to free a slot; and then it has been, or stays.
  void expect_slot();
  void stop_expecting_slot();
  // False: some are still open.
  bool wait_for_none(std::chrono::milliseconds patience) const;

 private:
  mutable std::mutex mutex_;  // Guards everything below.
  mutable std::condition_variable none_;
  std::size_t expected_slots_ = 0;  // Of those in open_ that are about to be closed.
  std::unordered_set<Session*> open_;  // None of them is destroyed while it is in here.
};

}  // namespace bide::server
