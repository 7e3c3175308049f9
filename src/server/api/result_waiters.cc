#include "server/api/result_waiters.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "platform/fatal.h"

namespace bide::server {

struct ResultWaiters::Waiter {
  Answer answer;
  JobId id;
  bool waits = false;
  bool cancelled = false;
  std::list<std::shared_ptr<Waiter>>::iterator place;
  std::multimap<Moment, std::shared_ptr<Waiter>>::iterator deadline;
};

ResultWaiters::ResultWaiters(Inspector& inspector, std::function<void()> wake)
    : inspector_(inspector), wake_(std::move(wake)) {}

std::shared_ptr<ResultWaiters::Waiter> ResultWaiters::make_waiter(Answer answer) const {
  auto waiter = std::make_shared<Waiter>();
  waiter->answer = std::move(answer);
  return waiter;
}

void ResultWaiters::wait(const std::shared_ptr<Waiter>& waiter, const JobId& id, Moment until) {
  std::uint64_t watch = 0;  // Not 0: to be started.
  bool wake = false;
  {
    std::unique_lock lock(mutex_);
    if (waiter->cancelled) return;
    const auto refuse = [&](std::optional<Result<JobInfo>> why) {
      lock.unlock();
      waiter->answer(std::move(why));
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
    waiter->id = id;
    waiter->waits = true;
    waiter->place = found->second.waiters.insert(found->second.waiters.end(), waiter);
    waiter->deadline = deadlines_.emplace(until, waiter);
    wake = until < armed_;
    armed_ = std::min(armed_, until);
  }
  if (wake) wake_();
  if (watch == 0) return;
  GiveUp give_up = inspector_.watch(id, [weak = weak_from_this(), id, watch](const Result<JobInfo>& info) {
    if (const auto self = weak.lock()) self->finished(id, watch, info);
  });
  {
    std::lock_guard lock(mutex_);
    const auto found = watched_.find(id);
    if (found != watched_.end() && found->second.number == watch) {
      found->second.give_up = std::move(give_up);
      return;
    }
  }
  give_up();  // All waiters left meanwhile; or it has completed, and this does nothing.
}

GiveUp ResultWaiters::remove(const std::shared_ptr<Waiter>& waiter) {
  deadlines_.erase(waiter->deadline);
  const auto found = watched_.find(waiter->id);
  platform::require(found != watched_.end(), "whoever waits for a job has it watched");
  found->second.waiters.erase(waiter->place);
  waiter->waits = false;
  if (!found->second.waiters.empty()) return nullptr;
  GiveUp give_up = std::move(found->second.give_up);
  watched_.erase(found);
  platform::require(watched_.size() <= deadlines_.size(), "a job is watched only while somebody waits for it");
  return give_up;
}

void ResultWaiters::cancel(const std::shared_ptr<Waiter>& waiter) {
  GiveUp give_up;
  {
    std::lock_guard lock(mutex_);
    waiter->cancelled = true;
    if (waiter->waits) give_up = remove(waiter);
  }
  if (give_up) give_up();
}

void ResultWaiters::finished(const JobId& id, std::uint64_t watch, const Result<JobInfo>& info) {
  std::vector<std::shared_ptr<Waiter>> waiting;
  {
    std::lock_guard lock(mutex_);
    const auto found = watched_.find(id);
    if (found == watched_.end() || found->second.number != watch) return;
    waiting.assign(found->second.waiters.begin(), found->second.waiters.end());
    for (const auto& each : waiting) (void)remove(each);
  }
  for (const auto& each : waiting) each->answer(info);
}

std::optional<Moment> ResultWaiters::tick(Moment now) {
  std::vector<std::shared_ptr<Waiter>> late;
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

void ResultWaiters::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  tick(Moment::max());
}

std::size_t ResultWaiters::watched() const {
  std::lock_guard lock(mutex_);
  return watched_.size();
}

std::size_t ResultWaiters::waiting() const {
  std::lock_guard lock(mutex_);
  return deadlines_.size();
}

}  // namespace bide::server
