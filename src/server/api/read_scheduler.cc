#include "server/api/read_scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/broker_answers.h"
#include "platform/fatal.h"

namespace bide::server {

namespace {

// From here on making the answer takes longer than handing it to another thread.
constexpr std::size_t kLarge = 256 * 1024;
// Then one that is probably large has its turn.
constexpr int kUnknownInARow = 16;

bool is_large(const JobInfo& info) { return core::shown_bytes(info) >= kLarge; }
bool is_large(const JobPage& page) {
  std::size_t bytes = 0;
  for (const JobInfo& info : page.jobs) bytes += core::shown_bytes(info);
  return bytes >= kLarge;
}

}  // namespace

// Releases the slot also when the completion throws.
struct ReadScheduler::SlotGuard {
  ReadScheduler& reads;
  const std::string& name;
  const Priority priority;
  ~SlotGuard() {
    {
      const std::lock_guard lock(reads.mutex_);
      const auto caller = reads.callers_.find(name);
      platform::require(caller != reads.callers_.end() && caller->second.under_way.of(priority) > 0,
                        "a read that ends was under way");
      --reads.under_way_.of(priority);
      --caller->second.under_way.of(priority);
      if (caller->second.is_idle()) reads.callers_.erase(caller);
    }
    reads.start_waiting();
  }
};

template <class T>
Completion<T> ReadScheduler::releasing_slot(const Identity& caller, Priority priority, Completion<T> done) {
  return [self = shared_from_this(), name = caller.name, connection = caller.connection, priority,
          done = std::move(done)](Result<T> result) {
    const bool large = result && is_large(*result);
    self->set_last_size(connection, large);
    if (!large) {
      const SlotGuard guard{*self, name, priority};
      return done(std::move(result));
    }
    self->large_results_.run([self, name, priority, done, given = std::make_shared<Result<T>>(std::move(result))] {
      const SlotGuard guard{*self, name, priority};
      done(std::move(*given));
    });
  };
}

void ReadScheduler::set_last_size(std::uint64_t connection, bool is_large) {
  const std::lock_guard lock(mutex_);
  connections_.put(connection, is_large ? Priority::kLarge : Priority::kSmall);
}

ReadScheduler::Priority ReadScheduler::priority_of(const Identity& caller, bool is_list) const {
  const std::lock_guard lock(mutex_);
  const Priority* const known = connections_.find(caller.connection);
  return known != nullptr ? *known : is_list ? Priority::kLarge : Priority::kUnknown;
}

std::optional<ReadScheduler::Priority> ReadScheduler::Caller::next(const Counts& all) const {
  const auto has = [this](Priority priority) { return !waiting[static_cast<std::size_t>(priority)].empty(); };
  if (has(Priority::kSmall) && under_way.small < kAtOnceOfOne && all.small < kAtOnce) return Priority::kSmall;
  if (under_way.others >= kAtOnceOfOne || all.others >= kAtOnce) return std::nullopt;
  if (has(Priority::kUnknown) && (unknown_in_a_row < kUnknownInARow || !has(Priority::kLarge)))
    return Priority::kUnknown;
  return has(Priority::kLarge) ? std::optional(Priority::kLarge) : std::nullopt;
}

bool ReadScheduler::Caller::is_idle() const {
  return under_way.small == 0 && under_way.others == 0 &&
         std::all_of(waiting.begin(), waiting.end(), [](const auto& reads) { return reads.empty(); });
}

void ReadScheduler::find(const Identity& caller, const JobId& id, Completion<JobInfo> done) {
  const Priority priority = priority_of(caller, false);
  const auto drop = [done](const Error& error) { done(error); };
  const auto begin = [this, id, done = releasing_slot(caller, priority, std::move(done))] {
    inspector_.find(id, done);
  };
  add(caller, priority, {caller.connection, begin, drop});
}

void ReadScheduler::list(const Identity& caller, JobFilter filter, std::string cursor, std::size_t limit,
                         Completion<JobPage> done) {
  const Priority priority = priority_of(caller, true);
  const auto drop = [done](const Error& error) { done(error); };
  const auto begin = [this, filter = std::move(filter), cursor = std::move(cursor), limit,
                      done = releasing_slot(caller, priority, std::move(done))] {
    inspector_.list(filter, cursor, limit, done);
  };
  add(caller, priority, {caller.connection, begin, drop});
}

void ReadScheduler::drop(const Identity& caller) {
  std::vector<Read> dropped;
  {
    const std::lock_guard lock(mutex_);
    const auto found = callers_.find(caller.name);
    if (found == callers_.end()) return;
    for (auto& reads : found->second.waiting) {
      const auto is_other = [&](const Read& read) { return read.connection != caller.connection; };
      const auto from = std::stable_partition(reads.begin(), reads.end(), is_other);
      std::move(from, reads.end(), std::back_inserter(dropped));
      reads.erase(from, reads.end());
    }
    if (found->second.is_idle()) callers_.erase(found);
  }
  for (const Read& read : dropped) read.drop({ErrorCode::kUnavailable, "the client is gone"});
}

void ReadScheduler::add(const Identity& caller, Priority priority, Read read) {
  {
    const std::lock_guard lock(mutex_);
    callers_[caller.name].of(priority).push_back(std::move(read));
  }
  start_waiting();
}

// Round robin over callers, by name. Null: nobody may.
std::function<void()> ReadScheduler::take_next() {
  auto at = callers_.upper_bound(last_);
  for (std::size_t i = 0; i < callers_.size(); ++i, ++at) {
    if (at == callers_.end()) at = callers_.begin();
    Caller& caller = at->second;
    const std::optional<Priority> priority = caller.next(under_way_);
    if (!priority) continue;
    std::function<void()> read = std::move(caller.of(*priority).front().begin);
    caller.of(*priority).pop_front();
    if (*priority != Priority::kSmall) {
      caller.unknown_in_a_row = *priority == Priority::kUnknown ? caller.unknown_in_a_row + 1 : 0;
    }
    last_ = at->first;
    ++caller.under_way.of(*priority);
    ++under_way_.of(*priority);
    return read;
  }
  return nullptr;
}

void ReadScheduler::start_waiting() {
  for (std::unique_lock lock(mutex_); !starting_;) {
    const std::function<void()> read = take_next();
    if (!read) return;
    starting_ = true;  // No recursion when a read completes at once.
    lock.unlock();
    read();
    lock.lock();
    starting_ = false;
  }
}

}  // namespace bide::server
