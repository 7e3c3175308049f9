#include "server/api/bounded_reads.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/job_bytes.h"
#include "platform/fatal.h"

namespace bide::server {

namespace {

// From here on making the answer takes longer than handing it to another thread.
constexpr std::size_t kLarge = 256 * 1024;
constexpr std::size_t kMostConnections = 10'000;
// Of those that are perhaps large. Then one that is likely to be has its turn.
constexpr int kFirstInARow = 16;

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
  const Lane lane;
  ~Ended() {
    {
      const std::lock_guard lock(reads.mutex_);
      const auto turn = reads.turns_.find(caller);
      platform::require(turn != reads.turns_.end() && turn->second.under_way.of(lane) > 0, "a read that ends was under way");
      --reads.under_way_.of(lane);
      --turn->second.under_way.of(lane);
      if (turn->second.is_idle()) reads.turns_.erase(turn);
    }
    reads.start_waiting();
  }
};

template <class T>
Completion<T> BoundedReads::then_next(const Identity& caller, Lane lane, Completion<T> done) {
  return [self = shared_from_this(), caller = caller.name, connection = caller.connection, lane,
          done = std::move(done)](Result<T> result) {
    const bool makes_much = result && is_large(*result);
    self->note_size(connection, makes_much);
    if (!makes_much) {
      const Ended ended{*self, caller, lane};
      return done(std::move(result));
    }
    self->answers_.run([self, caller, lane, done, given = std::make_shared<Result<T>>(std::move(result))] {
      const Ended ended{*self, caller, lane};
      done(std::move(*given));
    });
  };
}

void BoundedReads::note_size(std::uint64_t connection, bool is_large) {
  const std::lock_guard lock(mutex_);
  const bool is_new = lanes_.insert_or_assign(connection, is_large ? Lane::kHeavy : Lane::kLight).second;
  if (!is_new) return;
  oldest_.push_back(connection);
  if (oldest_.size() <= kMostConnections) return;
  lanes_.erase(oldest_.front());
  oldest_.pop_front();
}

BoundedReads::Lane BoundedReads::lane_of(const Identity& caller, bool is_list) const {
  const std::lock_guard lock(mutex_);
  const auto known = lanes_.find(caller.connection);
  if (known != lanes_.end()) return known->second;
  return is_list ? Lane::kHeavy : Lane::kFirst;
}

std::optional<BoundedReads::Lane> BoundedReads::Turn::next_lane(const Counts& all) const {
  const auto has = [this](Lane lane) { return !waiting[static_cast<std::size_t>(lane)].empty(); };
  if (has(Lane::kLight) && under_way.light < kAtOnceOfOne && all.light < kAtOnce) return Lane::kLight;
  if (under_way.others >= kAtOnceOfOne || all.others >= kAtOnce) return std::nullopt;
  if (has(Lane::kFirst) && (first_in_a_row < kFirstInARow || !has(Lane::kHeavy))) return Lane::kFirst;
  return has(Lane::kHeavy) ? std::optional(Lane::kHeavy) : std::nullopt;
}

bool BoundedReads::Turn::is_idle() const {
  return under_way.light == 0 && under_way.others == 0 &&
         std::all_of(waiting.begin(), waiting.end(), [](const auto& lane) { return lane.empty(); });
}

void BoundedReads::find(const Identity& caller, const JobId& id, Completion<JobInfo> done) {
  const Lane lane = lane_of(caller, false);
  const auto drop = [done](const Error& error) { done(error); };
  const auto begin = [this, id, done = then_next(caller, lane, std::move(done))] { inspector_.find(id, done); };
  add(caller, lane, {caller.connection, begin, drop});
}

void BoundedReads::list(const Identity& caller, JobFilter filter, std::string cursor, std::size_t limit,
                        Completion<JobPage> done) {
  const Lane lane = lane_of(caller, true);
  const auto drop = [done](const Error& error) { done(error); };
  const auto begin = [this, filter = std::move(filter), cursor = std::move(cursor), limit,
                      done = then_next(caller, lane, std::move(done))] { inspector_.list(filter, cursor, limit, done); };
  add(caller, lane, {caller.connection, begin, drop});
}

void BoundedReads::give_up(const Identity& caller) {
  std::vector<Read> dropped;
  {
    const std::lock_guard lock(mutex_);
    const auto turn = turns_.find(caller.name);
    if (turn == turns_.end()) return;
    for (auto& lane : turn->second.waiting) {
      const auto is_other = [&](const Read& read) { return read.connection != caller.connection; };
      const auto from = std::stable_partition(lane.begin(), lane.end(), is_other);
      std::move(from, lane.end(), std::back_inserter(dropped));
      lane.erase(from, lane.end());
    }
    if (turn->second.is_idle()) turns_.erase(turn);
  }
  for (const Read& read : dropped) read.drop({ErrorCode::kUnavailable, "the client is gone"});
}

void BoundedReads::add(const Identity& caller, Lane lane, Read read) {
  {
    const std::lock_guard lock(mutex_);
    turns_[caller.name].of(lane).push_back(std::move(read));
  }
  start_waiting();
}

// One read of the next caller after the one that had the last turn, in the order of names. Null: nobody may.
std::function<void()> BoundedReads::take_next() {
  auto turn = turns_.upper_bound(last_);
  for (std::size_t i = 0; i < turns_.size(); ++i, ++turn) {
    if (turn == turns_.end()) turn = turns_.begin();
    const std::optional<Lane> lane = turn->second.next_lane(under_way_);
    if (!lane) continue;
    std::function<void()> read = std::move(turn->second.of(*lane).front().begin);
    turn->second.of(*lane).pop_front();
    if (*lane != Lane::kLight) turn->second.first_in_a_row = *lane == Lane::kFirst ? turn->second.first_in_a_row + 1 : 0;
    last_ = turn->first;
    ++turn->second.under_way.of(*lane);
    ++under_way_.of(*lane);
    return read;
  }
  return nullptr;
}

void BoundedReads::start_waiting() {
  for (std::unique_lock lock(mutex_); !starting_;) {
    const std::function<void()> read = take_next();
    if (!read) return;
    starting_ = true;  // A read that completes at once would start the next within itself, and so on.
    lock.unlock();
    read();
    lock.lock();
    starting_ = false;
  }
}

}  // namespace bide::server
