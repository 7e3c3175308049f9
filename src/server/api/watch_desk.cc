#include "server/api/watch_desk.h"

#include <algorithm>
#include <utility>
#include <vector>

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
  bool is_new = false;
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
    is_new = found == watched_.end();
    if (is_new && watched_.size() >= kMostJobs) {
      return refuse(Result<JobInfo>(Error{ErrorCode::kOverloaded, "too many jobs are being waited for"}));
    }
    if (is_new) found = watched_.try_emplace(id).first;
    wait->id = id;
    wait->waits = true;
    wait->place = found->second.insert(found->second.end(), wait);
    wait->deadline = deadlines_.emplace(until, wait);
    poke = until < armed_;
    armed_ = std::min(armed_, until);
  }
  if (poke) poke_();
  if (!is_new) return;
  inspector_.watch(id, [desk = weak_from_this(), id](const Result<JobInfo>& info) {
    if (const auto self = desk.lock()) self->finished(id, info);
  });
}

void WatchDesk::remove(const std::shared_ptr<Wait>& wait) {
  deadlines_.erase(wait->deadline);
  watched_.at(wait->id).erase(wait->place);
  wait->waits = false;
}

void WatchDesk::give_up(const std::shared_ptr<Wait>& wait) {
  std::lock_guard lock(mutex_);
  wait->gone = true;
  if (wait->waits) remove(wait);
}

void WatchDesk::finished(const JobId& id, const Result<JobInfo>& info) {
  std::vector<std::shared_ptr<Wait>> waiting;
  {
    std::lock_guard lock(mutex_);
    const auto found = watched_.find(id);
    if (found == watched_.end()) return;
    waiting.assign(found->second.begin(), found->second.end());
    for (const auto& each : waiting) remove(each);
    watched_.erase(id);
  }
  for (const auto& each : waiting) each->answer(info);
}

std::optional<Moment> WatchDesk::tick(Moment now) {
  std::vector<std::shared_ptr<Wait>> late;
  std::optional<Moment> next;
  {
    std::lock_guard lock(mutex_);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      late.push_back(deadlines_.begin()->second);
      remove(late.back());
    }
    if (!deadlines_.empty()) next = deadlines_.begin()->first;
    armed_ = next.value_or(Moment::max());
  }
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
