// ReadScheduler: bounds the reads of jobs that are under way, since what was read is in memory with its bodies until its
// answer is made. Callers take turns. Of one caller, connections whose last read was small come first and have slots of
// their own; then single jobs for connections that have read nothing yet; then lists, and connections whose last read
// was large.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "bide/inspector.h"
#include "platform/task_thread.h"
#include "server/api/recent_map.h"
#include "server/http/identity.h"

namespace bide::server {

// Safe to share between threads.
class ReadScheduler : public std::enable_shared_from_this<ReadScheduler> {
 public:
  // Of connections whose last read was small, and as many of the others.
  static constexpr int kAtOnce = 4;
  static constexpr int kAtOnceOfOne = 2;  // Caller.

  // The inspector must outlive every read.
  explicit ReadScheduler(Inspector& inspector) : inspector_(inspector) {}

  // As of the inspector. The slot is free again when `done` has returned. Large results complete on a thread of their
  // own: making an answer of one takes as long as many small requests.
  void find(const Identity& caller, const JobId& id, Completion<JobInfo> done);
  void list(const Identity& caller, JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done);

  // The client of this connection has gone: its reads that wait complete with kUnavailable.
  void drop(const Identity& caller);

  // Large results complete like all others from now on.
  void stop() { large_results_.stop(); }

 private:
  enum class Priority : std::uint8_t { kSmall, kUnknown, kLarge };
  // Reads under way, in both kinds of slots.
  struct Counts {
    int small = 0;
    int others = 0;
    int& of(Priority priority) { return priority == Priority::kSmall ? small : others; }
  };
  struct Read {
    std::uint64_t connection = 0;
    std::function<void()> begin;
    std::function<void(const Error&)> drop;
  };
  // The reads of one caller. Removed when it has none.
  struct Caller {
    std::deque<Read>& of(Priority priority) { return waiting[static_cast<std::size_t>(priority)]; }
    // Nothing: it has to wait. `all` is what all callers have under way.
    std::optional<Priority> next(const Counts& all) const;
    bool is_idle() const;

    std::array<std::deque<Read>, 3> waiting;
    int unknown_in_a_row = 0;
    Counts under_way;
  };
  struct SlotGuard;

  template <class T>
  Completion<T> releasing_slot(const Identity& caller, Priority priority, Completion<T> done);
  Priority priority_of(const Identity& caller, bool is_list) const;
  void add(const Identity& caller, Priority priority, Read read);
  void set_last_size(std::uint64_t connection, bool is_large);
  std::function<void()> take_next();
  void start_waiting();

  static constexpr std::size_t kMostConnections = 10'000;

  Inspector& inspector_;
  platform::TaskThread large_results_;

  mutable std::mutex mutex_;  // Guards everything below.
  std::map<std::string, Caller> callers_;
  std::string last_;  // The caller of the read that was started last.
  RecentMap<std::uint64_t, Priority, std::unordered_map<std::uint64_t, Priority>> connections_{kMostConnections};
  Counts under_way_;
  bool starting_ = false;
};

}  // namespace bide::server
