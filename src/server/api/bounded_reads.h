// BoundedReads: reads jobs at the broker, a few at a time. What was read is in memory with its bodies until its answer is
// made, so a thousand clients that ask for large jobs at once must not have a thousand of them read. Callers take turns: one
// that asks for much does not keep the others waiting. Of one caller those connections come first whose last read was small,
// and they have places of their own; then single jobs for connections that have read nothing yet; then lists, and what
// connections ask for whose last read was large.

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
#include "server/http/identity.h"

namespace bide::server {

// Safe to share between threads.
class BoundedReads : public std::enable_shared_from_this<BoundedReads> {
 public:
  // Of those whose last read was small, and as many of the others.
  static constexpr int kAtOnce = 4;
  static constexpr int kAtOnceOfOne = 2;  // Caller.

  // The inspector must outlive every read.
  explicit BoundedReads(Inspector& inspector) : inspector_(inspector) {}

  // As of the inspector, in the turn of the caller. The next read begins when `done` has returned. What is
  // large is completed on a thread for that, since making an answer of it takes as long as many small requests.
  void find(const Identity& caller, const JobId& id, Completion<JobInfo> done);
  void list(const Identity& caller, JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done);

  // The client of this connection is gone: what it asked for and was not begun is completed with kUnavailable.
  void give_up(const Identity& caller);

  // Large ones are completed like all others from now on.
  void stop() { answers_.stop(); }

 private:
  enum class Lane : std::uint8_t { kLight, kFirst, kHeavy };
  // Reads that are under way: of the light lane, and of the others.
  struct Counts {
    int light = 0;
    int others = 0;
    int& of(Lane lane) { return lane == Lane::kLight ? light : others; }
  };
  // What one caller has under way and waits for. There is none without either.
  struct Read {
    std::uint64_t connection = 0;
    std::function<void()> begin;
    std::function<void(const Error&)> drop;
  };
  struct Turn {
    std::deque<Read>& of(Lane lane) { return waiting[static_cast<std::size_t>(lane)]; }
    // Where its next one is, given what is under way of all callers. Nothing: it has to wait.
    std::optional<Lane> next_lane(const Counts& all) const;
    bool is_idle() const;

    std::array<std::deque<Read>, 3> waiting;
    int first_in_a_row = 0;
    Counts under_way;
  };
  using Turns = std::map<std::string, Turn>;
  struct Ended;

  template <class T>
  Completion<T> then_next(const Identity& caller, Lane lane, Completion<T> done);
  Lane lane_of(const Identity& caller, bool is_list) const;
  void add(const Identity& caller, Lane lane, Read read);
  void note_size(std::uint64_t connection, bool is_large);
  std::function<void()> take_next();
  void start_waiting();

  Inspector& inspector_;
  platform::TaskThread answers_;  // Makes those of large reads.

  mutable std::mutex mutex_;  // Guards everything below.
  Turns turns_;
  std::string last_;  // Who had a turn.
  std::unordered_map<std::uint64_t, Lane> lanes_;  // Of connections that have read something, the last few of them.
  std::deque<std::uint64_t> oldest_;               // The same.
  Counts under_way_;
  bool starting_ = false;
};

}  // namespace bide::server
