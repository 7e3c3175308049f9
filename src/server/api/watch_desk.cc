#include "server/api/watch_desk.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "platform/fatal.h"

namespace bide::server {

struct WatchDesk::Wait {
  Answer answer;
  JobId id;
  bool waits = false;
  bool gone = false;
  std::list<std::shared_ptr<Wait>>::iterator place;
  std::multimap<Moment, std::shared_ptr<Wait>>::iterator deadline;
};

WatchDesk::WatchDesk(Inspector& inspector, std::function<void()> poke)
    : inspector_(inspector), poke_(std::move(poke)) {}

std::shared_ptr<WatchDesk::Wait> WatchDesk::make_wait(Answer answer) const {
  auto wait = std::make_shared<Wait>();
  wait->answer = std::move(answer);
  return wait;
}

void WatchDesk::wait(const std::shared_ptr<Wait>& wait, const JobId& id, Moment until) {
  std::uint64_t watch = 0;  // Not 0: to be made.
  bool poke = false;
  {
    std::unique_lock lock(mutex_);
    if (wait->gone) return;
    const auto refuse = [&](std::optional<Result<JobInfo>> why) {
      lock.unlock();
      wait->answer(std::move(why));
    };
    if (stopped_) return refuse(std::nullopt);
    auto found = watched_.find(id);
    if (found == watched_.end()) {
      if (watched_.size() >= kMostJobs) {
        return refuse(Result<JobInfo>(Error{ErrorCode::kOverloaded, "too many jobs are being waited for"}));
      }
      watch = ++last_watch_;
      found = watched_.try_emplace(id).first;
      found->second.number = watch;
    }
    wait->id = id;
    wait->waits = true;
    wait->place = found->second.waits.insert(found->second.waits.end(), wait);
    wait->deadline = deadlines_.emplace(until, wait);
    poke = until < armed_;
    armed_ = std::min(armed_, until);
  }
  if (poke) poke_();
  if (watch == 0) return;
  GiveUp give_up = inspector_.watch(id, [desk = weak_from_this(), id, watch](const Result<JobInfo>& info) {
    if (const auto self = desk.lock()) self->finished(id, watch, info);
  });
  {
    std::lock_guard lock(mutex_);
    const auto found = watched_.find(id);
    if (found != watched_.end() && found->second.number == watch) {
      found->second.give_up = std::move(give_up);
      return;
    }
  }
  give_up();  // The last who waited left while it was being made; or it is finished, and then it does no harm.
}

GiveUp WatchDesk::remove(const std::shared_ptr<Wait>& wait) {
  deadlines_.erase(wait->deadline);
  const auto found = watched_.find(wait->id);
  platform::require(found != watched_.end(), "whoever waits for a job has it watched");
  found->second.waits.erase(wait->place);
  wait->waits = false;
  if (!found->second.waits.empty()) return nullptr;
  GiveUp give_up = std::move(found->second.give_up);
  watched_.erase(found);
  platform::require(watched_.size() <= deadlines_.size(), "a job is watched only while somebody waits for it");
  return give_up;
}

void WatchDesk::give_up(const std::shared_ptr<Wait>& wait) {
  GiveUp give_up;
  {
    std::lock_guard lock(mutex_);
    wait->gone = true;
    if (wait->waits) give_up = remove(wait);
  }
  if (give_up) give_up();
}

void WatchDesk::finished(const JobId& id, std::uint64_t watch, const Result<JobInfo>& info) {
  std::vector<std::shared_ptr<Wait>> waiting;
  {
    std::lock_guard lock(mutex_);
    const auto found = watched_.find(id);
    if (found == watched_.end() || found->second.number != watch) return;
    waiting.assign(found->second.waits.begin(), found->second.waits.end());
    for (const auto& each : waiting) (void)remove(each);
  }
  for (const auto& each : waiting) each->answer(info);
}

std::optional<Moment> WatchDesk::tick(Moment now) {
  std::vector<std::shared_ptr<Wait>> late;
  std::vector<GiveUp> given_up;
  std::optional<Moment> next;
  {
    std::lock_guard lock(mutex_);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      late.push_back(deadlines_.begin()->second);
      if (GiveUp give_up = remove(late.back())) given_up.push_back(std::move(give_up));
    }
    if (!deadlines_.empty()) next = deadlines_.begin()->first;
    armed_ = next.value_or(Moment::max());
  }
  for (const GiveUp& give_up : given_up) give_up();
  for (const auto& each : late) each->answer(std::nullopt);
  return next;
}

void WatchDesk::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  tick(Moment::max());
}

std::size_t WatchDesk::watched() const {
  std::lock_guard lock(mutex_);
  return watched_.size();
}

std::size_t WatchDesk::waiting() const {
  std::lock_guard lock(mutex_);
  return deadlines_.size();
}

}  // namespace bide::server
