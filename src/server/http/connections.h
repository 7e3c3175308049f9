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
  // Gives up those that hold some of the share and have not gone on since `before`, the longest first. False: none was,
  // because together they have less than so many bytes.
  bool give_up_stalled(Share share, std::uint64_t bytes, std::chrono::steady_clock::time_point before) const;
  // False: some are still open.
  bool wait_for_none(std::chrono::milliseconds patience) const;

 private:
  mutable std::mutex mutex_;  // Guards everything below.
  mutable std::condition_variable none_;
  std::unordered_set<Session*> open_;  // None of them is destroyed while it is in here.
};

}  // namespace bide::server
