#include "server/http/connections.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "platform/fatal.h"
#include "server/http/session.h"

namespace bide::server {

void Connections::add(Session& session) {
  const std::lock_guard lock(mutex_);
  open_.insert(&session);
}

void Connections::remove(Session& session) {
  const std::lock_guard lock(mutex_);
  if (open_.erase(&session) == 1 && open_.empty()) none_.notify_all();
}

std::size_t Connections::count() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

// In both, what is returned is let go of by the caller, without the lock: the last one to hold a session destroys it, and
// that removes it here.
std::vector<std::shared_ptr<Session>> Connections::all() const {
  std::vector<std::shared_ptr<Session>> found;
  const std::lock_guard lock(mutex_);
  found.reserve(open_.size());
  for (Session* session : open_) found.push_back(session->weak_from_this().lock());
  std::erase(found, nullptr);
  return found;
}

std::vector<std::shared_ptr<Session>> Connections::overdue(std::chrono::steady_clock::time_point now) const {
  std::vector<std::shared_ptr<Session>> found;
  const std::lock_guard lock(mutex_);
  for (Session* session : open_) {
    if (session->is_overdue(now)) found.push_back(session->weak_from_this().lock());
  }
  std::erase(found, nullptr);
  return found;
}

namespace {

using Clock = std::chrono::steady_clock;

struct Found {
  std::shared_ptr<Session> session;
  Session::Waiting waiting;
  int rank = 0;
};

// The rank by which it is ended for a claim; the lowest first. Nothing: it is not.
std::optional<int> rank_of(const Session::Waiting& waiting, const MemoryClaim& claim, std::uint64_t fair_part,
                           Clock::time_point now, const HttpLimits& limits) {
  if (waiting.is_lagging(now, limits)) return 0;
  const bool claims_its_part = claim.caller != nullptr && claim.caller->of(claim.share) + claim.bytes <= fair_part;
  const bool is_of_another = waiting.caller && waiting.caller.get() != claim.caller;
  const bool has_too_much = is_of_another && waiting.caller->of(claim.share) > fair_part;
  if (claims_its_part && has_too_much) return 1;
  if (!claim.is_small()) return std::nullopt;
  // Nobody gets more than its part at the expense of one who stays within.
  if (!claims_its_part && is_of_another && !has_too_much) return std::nullopt;
  if (waiting.bytes > MemoryClaim::kSmall) return 2;
  // A small request that is not here at once is not from somebody who is waiting for its answer.
  if (now - waiting.began >= limits.stalled_after / 10) return 3;
  return std::nullopt;
}

bool is_ended_before(const Found& a, const Found& b) {
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.rank == 3) return a.waiting.began < b.waiting.began;
  return a.waiting.bytes > b.waiting.bytes;
}

}  // namespace

bool Connections::make_room(const MemoryClaim& claim, std::uint64_t missing, std::uint64_t fair_part,
                            const HttpLimits& limits) const {
  const auto now = Clock::now();
  std::vector<Found> found;
  {
    const std::lock_guard lock(mutex_);
    for (Session* session : open_) {
      if (session->is_being_evicted()) continue;
      Session::Waiting waiting = session->waiting();
      if (waiting.bytes == 0 || waiting.share != claim.share || waiting.charge == claim.charge) continue;
      const auto rank = rank_of(waiting, claim, fair_part, now, limits);
      if (!rank) continue;
      if (auto alive = session->weak_from_this().lock()) found.push_back({std::move(alive), std::move(waiting), *rank});
    }
  }
  std::sort(found.begin(), found.end(), &is_ended_before);
  // A caller is not brought below its fair part for one that is within.
  std::unordered_map<const MemoryCaller*, std::uint64_t> taken;
  std::vector<const Found*> chosen;
  std::uint64_t all = 0;
  for (const Found& one : found) {
    if (all >= missing) break;
    const MemoryCaller* const caller = one.waiting.caller.get();
    if (one.rank == 1 && caller->of(claim.share) <= fair_part + taken[caller]) continue;
    taken[caller] += one.waiting.bytes;
    all += one.waiting.bytes;
    chosen.push_back(&one);
  }
  if (all < missing) return false;
  std::uint64_t expected = 0;
  for (const Found* one : chosen) expected += one->session->evict_for_memory(one->waiting);
  return expected >= missing;
}

bool Connections::make_slot(const HttpLimits& limits) {
  const auto now = Clock::now();
  std::vector<Found> found;
  std::unordered_map<const MemoryCaller*, std::size_t> open_of;
  {
    const std::lock_guard lock(mutex_);
    if (open_.size() < limits.connections + expected_slots_) return true;
    for (Session* session : open_) {
      Session::Waiting waiting = session->waiting();
      ++open_of[waiting.is_known ? waiting.caller.get() : nullptr];
      const bool is_slow = waiting.turn <= now - limits.stalled_after;  // The turn can be max().
      if (session->is_being_evicted() || !is_slow || (waiting.bytes > 0 && !waiting.is_lagging(now, limits))) continue;
      if (auto alive = session->weak_from_this().lock()) found.push_back({std::move(alive), std::move(waiting)});
    }
  }
  std::sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
    if (a.waiting.is_known != b.waiting.is_known) return !a.waiting.is_known;
    const auto count = [&](const Found& one) { return one.waiting.is_known ? open_of[one.waiting.caller.get()] : 0; };
    const std::size_t of_a = count(a);
    const std::size_t of_b = count(b);
    return of_a != of_b ? of_a > of_b : a.waiting.turn < b.waiting.turn;
  });
  // A few at once: each look is at all that are open.
  const std::size_t most = std::max<std::size_t>(1, limits.connections / 64);
  std::size_t ended = 0;
  for (const Found& one : found) {
    if (ended < most && one.session->evict_for_slot(one.waiting)) ++ended;
  }
  return ended > 0;
}

void Connections::expect_slot() {
  const std::lock_guard lock(mutex_);
  ++expected_slots_;
}

void Connections::stop_expecting_slot() {
  const std::lock_guard lock(mutex_);
  platform::require(expected_slots_ > 0, "no more slots are freed than were expected");
  --expected_slots_;
}

bool Connections::wait_for_none(std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  return none_.wait_for(lock, patience, [this] { return open_.empty(); });
}

}  // namespace bide::server
