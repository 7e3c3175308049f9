#include "server/api/bounded_reads.h"

#include <utility>

#include "core/job_bytes.h"
#include "platform/fatal.h"

namespace bide::server {

namespace {

// From here on making the answer takes longer than handing it to another thread.
constexpr std::size_t kLarge = 256 * 1024;
constexpr std::size_t kMostLight = 10'000;
// Then one that is perhaps large has its turn.
constexpr int kLightInARow = 16;

bool is_large(const JobInfo& info) { return core::shown_bytes(info) >= kLarge; }
bool is_large(const JobPage& page) {
  std::size_t bytes = 0;
  for (const JobInfo& info : page.jobs) bytes += core::shown_bytes(info);
  return bytes >= kLarge;
}

}  // namespace

// Also when the completion throws: the others must not wait for ever.
struct BoundedReads::Ended {
  BoundedReads& reads;
  const std::string& caller;
  ~Ended() {
    {
      const std::lock_guard lock(reads.mutex_);
      const auto turn = reads.turns_.find(caller);
      platform::require(turn != reads.turns_.end() && turn->second.under_way > 0, "a read that ends was under way");
      --reads.under_way_;
      if (--turn->second.under_way == 0 && !turn->second.is_waiting()) reads.turns_.erase(turn);
    }
    reads.start_waiting();
  }
};

template <class T>
Completion<T> BoundedReads::then_next(const Identity& caller, Completion<T> done) {
  return [self = shared_from_this(), caller = caller.name, connection = caller.connection,
          done = std::move(done)](Result<T> result) {
    const bool makes_much = result && is_large(*result);
    self->note_size(connection, makes_much);
    if (!makes_much) {
      const Ended ended{*self, caller};
      return done(std::move(result));
    }
    self->answers_.run([self, caller, done, given = std::make_shared<Result<T>>(std::move(result))] {
      const Ended ended{*self, caller};
      done(std::move(*given));
    });
  };
}

void BoundedReads::note_size(std::uint64_t connection, bool is_large) {
  const std::lock_guard lock(mutex_);
  if (is_large) {
    light_.erase(connection);
    return;
  }
  if (!light_.insert(connection).second) return;
  oldest_light_.push_back(connection);
  if (oldest_light_.size() <= kMostLight) return;
  light_.erase(oldest_light_.front());
  oldest_light_.pop_front();
}

std::function<void()> BoundedReads::Turn::take_next() {
  const bool is_light = waiting.empty() || (!light.empty() && light_in_a_row < kLightInARow);
  light_in_a_row = is_light ? light_in_a_row + 1 : 0;
  Waiting& from = is_light ? light : waiting;
  std::function<void()> next = std::move(from.front());
  from.pop_front();
  return next;
}

void BoundedReads::find(const Identity& caller, const JobId& id, Completion<JobInfo> done) {
  add(caller, [this, id, done = then_next(caller, std::move(done))] { inspector_.find(id, done); });
}

void BoundedReads::list(const Identity& caller, JobFilter filter, std::string cursor, std::size_t limit,
                        Completion<JobPage> done) {
  add(caller, [this, filter = std::move(filter), cursor = std::move(cursor), limit,
               done = then_next(caller, std::move(done))] { inspector_.list(filter, cursor, limit, done); });
}

void BoundedReads::add(const Identity& caller, std::function<void()> read) {
  {
    const std::lock_guard lock(mutex_);
    Turn& turn = turns_[caller.name];
    (light_.contains(caller.connection) ? turn.light : turn.waiting).push_back(std::move(read));
  }
  start_waiting();
}

// The next after the one that had the last turn, in the order of names.
BoundedReads::Turns::iterator BoundedReads::next_turn() {
  auto turn = turns_.upper_bound(last_);
  for (std::size_t i = 0; i < turns_.size(); ++i, ++turn) {
    if (turn == turns_.end()) turn = turns_.begin();
    if (turn->second.is_waiting() && turn->second.under_way < kAtOnceOfOne) return turn;
  }
  return turns_.end();
}

void BoundedReads::start_waiting() {
  for (std::unique_lock lock(mutex_); !starting_ && under_way_ < kAtOnce;) {
    const auto turn = next_turn();
    if (turn == turns_.end()) return;
    const std::function<void()> read = turn->second.take_next();
    last_ = turn->first;
    ++turn->second.under_way;
    ++under_way_;
    starting_ = true;  // A read that completes at once would start the next within itself, and so on.
    lock.unlock();
    read();
    lock.lock();
    starting_ = false;
  }
}

}  // namespace bide::server
