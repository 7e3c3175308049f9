#include "brokers/database/watcher.h"

#include <chrono>
#include <utility>

namespace bide::brokers::database {

namespace {

constexpr Milliseconds kLongestWait{20'000};  // Then a silent connection is looked at.
constexpr Milliseconds kAfterFailure{100};

bool is_over(const Result<JobInfo>& info) {
  if (!info) return info.error().code == ErrorCode::kNotFound;
  return info->state == JobState::kDone || info->state == JobState::kDead;
}

}  // namespace

Watcher::Watcher(JobStore& store, Granter& granter, Examine examine)
    : granter_(granter), examine_(std::move(examine)), lane_(store, [this](Lane& lane) { return step(lane); }) {}

std::uint64_t Watcher::add(JobId id, Completion<JobInfo> done) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = ++last_number_;
    watches_[id].emplace(number, std::move(done));
  }
  lane_.wake();
  return number;
}

void Watcher::give_up(JobId id, std::uint64_t number) {
  Completion<JobInfo> gone;  // Destroyed without the lock.
  const std::lock_guard lock(mutex_);
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  if (const auto watch = found->second.find(number); watch != found->second.end()) {
    gone = std::move(watch->second);
    found->second.erase(watch);
  }
  if (found->second.empty()) watches_.erase(found);
}

void Watcher::examined(JobId id, const Result<JobInfo>& info) {
  if (!is_over(info)) return;
  std::map<std::uint64_t, Completion<JobInfo>> waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto found = watches_.find(id);
    if (found == watches_.end()) return;
    waiting = std::move(found->second);
    watches_.erase(found);
  }
  for (const auto& [number, done] : waiting) done(info);
}

bool Watcher::is_watched(JobId id) {
  const std::lock_guard lock(mutex_);
  return watches_.contains(id);
}

void Watcher::stop() {
  lane_.stop(Milliseconds(0));
  std::map<JobId, std::map<std::uint64_t, Completion<JobInfo>>> left;
  {
    const std::lock_guard lock(mutex_);
    left = std::exchange(watches_, {});
  }
  for (const auto& [id, waiting] : left) {
    for (const auto& [number, done] : waiting) done(Error{ErrorCode::kUnavailable, "the broker was closed"});
  }
}

void Watcher::look_everywhere() {
  granter_.look_everywhere();
  std::vector<JobId> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, waiting] : watches_) ids.push_back(id);
  }
  for (const JobId& id : ids) examine_(id);
}

std::optional<Moment> Watcher::step(Lane& lane) {
  if (lane.is_stopping()) return std::nullopt;
  const auto notices = lane.call_repeatable([&](Session& on) -> Result<std::vector<Notice>> {
    if (listening_on_ == lane.sessions()) return on.wait(kLongestWait);
    if (Status listening = on.listen(); !listening) return listening.error();
    listening_on_ = lane.sessions();
    return std::vector<Notice>{Notice{}};  // Whatever was told before, nobody heard it.
  });
  const Moment again = std::chrono::steady_clock::now();
  if (!notices) return again + kAfterFailure;
  for (const Notice& notice : *notices) {
    switch (notice.kind) {
      case Notice::Kind::kQueue:
        if (notice.due && !notice.wait) {
          granter_.look_at(notice.queue, *notice.due);
        } else {
          granter_.look_at(notice.queue, again + notice.wait.value_or(Milliseconds(0)));
        }
        break;
      case Notice::Kind::kEnded:
        if (is_watched(notice.id)) examine_(notice.id);
        break;
      case Notice::Kind::kEverything: look_everywhere(); break;
    }
  }
  return again;
}

}  // namespace bide::brokers::database
