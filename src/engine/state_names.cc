// State, the names of queues, kinds and workers.

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/state.h"
#include "platform/fatal.h"

namespace bide::engine {

namespace {

// Names freed at once, as far as one piece goes.
constexpr std::size_t kFreedAtOnce = 64;
// Entries looked at for it in one request.
constexpr std::size_t kLookedAt = 65'536;

std::uint16_t queue_of(const Entry& entry) { return static_cast<std::uint16_t>(entry.queue); }
std::uint16_t kind_of(const Entry& entry) { return static_cast<std::uint16_t>(entry.kind); }

}  // namespace

std::uint16_t State::hold_queue(std::string_view name) {
  auto number = queues_.hold(name);
  // That done jobs were forgotten is not written down: in recovery there are more of them than there were.
  if (!number && free_names(true, slab_.size())) number = queues_.hold(name);
  platform::require(number.has_value(), "too many queues");
  return *number;
}

std::uint16_t State::hold_kind(std::string_view name) {
  auto number = kinds_.hold(name);
  if (!number && free_names(false, slab_.size())) number = kinds_.hold(name);
  platform::require(number.has_value(), "too many kinds");
  return *number;
}

std::uint16_t State::hold_worker(std::string_view name) {
  const auto number = workers_.hold(name);
  return number ? *number : workers_.hold(std::uint16_t{0});
}

void State::release_queue(std::uint16_t number) {
  if (!queues_.names().release(number)) return;
  const Queue& queue = queues_[number];
  platform::require(!queue.paused && !queue.bound && !queue.limits && queue.subscriptions == 0 && queue.taken == 0,
                    "a queue is gone that is still used");
}

void State::release_kind(std::uint16_t number) { (void)kinds_.release(number); }

void State::hold_names(Entry& entry, std::string_view queue, std::string_view kind) {
  entry.queue = hold_queue(queue);
  entry.kind = hold_kind(kind);
}

void State::release_names(const Entry& entry) {
  release_queue(queue_of(entry));
  release_kind(kind_of(entry));
}

void State::names_of_done(const Entry& entry, bool done) {
  queues_.names().is_done(queue_of(entry), done);
  kinds_.is_done(kind_of(entry), done);
}

void State::add_subscription(std::uint16_t queue, bool of_kinds) {
  queues_.names().hold(queue);
  ++queues_[queue].subscriptions;
  if (of_kinds && queues_[queue].kind_subscriptions++ == 0) queues_.arrange(queue);
}

void State::remove_subscription(std::uint16_t queue, bool of_kinds) {
  --queues_[queue].subscriptions;
  if (of_kinds && --queues_[queue].kind_subscriptions == 0) queues_.arrange(queue);
  release_queue(queue);
}

// Forgets results of queues, or kinds, that have nothing but done jobs; `most` entries are looked at. True: a name is free.
bool State::free_names(bool queues, std::size_t most) {
  const Names& names = queues ? queues_.names() : kinds_;
  const std::size_t before = names.existing();
  most = std::min<std::size_t>(most, slab_.size());
  for (; most > 0 && names.existing() + kFreedAtOnce > before; --most) {
    if (names_cursor_ >= slab_.size()) names_cursor_ = 0;
    const Slot slot = names_cursor_++;
    if (slab_[slot].entry_state() != EntryState::kDone) continue;
    if (names.is_only_done(queues ? queue_of(slab_[slot]) : kind_of(slab_[slot]))) forget(slot);
  }
  return !names.full();
}

bool State::has_names_left(const Job& job, std::size_t wanted) {
  const auto has_room = [&](bool queues, const std::string& name) {
    const Names& names = queues ? queues_.names() : kinds_;
    if (names.existing() + wanted <= Names::kMost || names.find(name)) return true;
    (void)free_names(queues, kLookedAt);
    return names.existing() + wanted <= Names::kMost || names.find(name).has_value();
  };
  return has_room(true, job.queue) && has_room(false, job.kind);
}

std::vector<std::string> State::audit_names() const {
  std::vector<std::string> problems;
  const auto compare = [&](const std::string& what, std::uint64_t held, std::uint64_t users) {
    if (held != users) {
      problems.push_back(what + " held by " + std::to_string(held) + ", used by " + std::to_string(users));
    }
  };
  std::uint64_t jobs = 0;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const auto number = static_cast<std::uint16_t>(i);
    const Queue& queue = queues_[number];
    const std::uint64_t here = std::accumulate(queue.counts.begin(), queue.counts.end(), std::uint64_t{0});
    jobs += here;
    compare("the queue " + queues_.names()[number] + " is", queues_.names().uses(number),
            here + queue.subscriptions + (queue.paused ? 1 : 0) + (queue.bound ? 1 : 0) + (queue.limits ? 1 : 0));
  }
  const auto sum = [](const Names& names) {
    std::uint64_t uses = 0;
    for (std::size_t i = 0; i < names.size(); ++i) uses += names.uses(static_cast<std::uint16_t>(i));
    return uses;
  };
  compare("names of kinds are", sum(kinds_), jobs);
  compare("names of workers are", sum(workers_), leases_.size() + 1);
  return problems;
}

}  // namespace bide::engine
