// BoundedReads: reads jobs at the broker, a few at a time. What was read is in memory with its bodies until its answer is
// made, so a thousand clients that ask for large jobs at once must not have a thousand of them read. Callers take turns: one
// that asks for much does not keep the others waiting. Of one caller those connections come first whose last read was small.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "bide/inspector.h"
#include "server/api/answer_thread.h"
#include "server/http/identity.h"

namespace bide::server {

// Safe to share between threads.
class BoundedReads : public std::enable_shared_from_this<BoundedReads> {
 public:
  static constexpr int kAtOnce = 4;
  static constexpr int kAtOnceOfOne = 2;  // Caller.

  // The inspector must outlive every read.
  explicit BoundedReads(Inspector& inspector) : inspector_(inspector) {}

  // As of the inspector, in the turn of the caller. The next read begins when `done` has returned. What is
  // large is completed on a thread for that, since making an answer of it takes as long as many small requests.
  void find(const Identity& caller, const JobId& id, Completion<JobInfo> done);
  void list(const Identity& caller, JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done);

  // Large ones are completed like all others from now on.
  void stop() { answers_.stop(); }

 private:
  // What one caller has under way and waits for. There is none without either.
  using Waiting = std::deque<std::function<void()>>;
  struct Turn {
    Waiting waiting;
    Waiting light;  // Of connections whose last read was small.
    int light_in_a_row = 0;
    int under_way = 0;

    bool is_waiting() const { return !waiting.empty() || !light.empty(); }
    std::function<void()> take_next();
  };
  using Turns = std::map<std::string, Turn>;
  struct Ended;

  template <class T>
  Completion<T> then_next(const Identity& caller, Completion<T> done);
  void add(const Identity& caller, std::function<void()> read);
  void note_size(std::uint64_t connection, bool is_large);
  void start_waiting();
  Turns::iterator next_turn();

  Inspector& inspector_;
  AnswerThread answers_;

  std::mutex mutex_;  // Guards everything below.
  Turns turns_;
  std::string last_;  // Who had a turn.
  std::unordered_set<std::uint64_t> light_;  // Connections whose last read was small, the last few of them.
  std::deque<std::uint64_t> oldest_light_;
  int under_way_ = 0;
  bool starting_ = false;
};

}  // namespace bide::server
