#include "brokers/remote/poller.h"

#include <algorithm>
#include <utility>

#include "platform/fatal.h"
#include "wire/lease_json.h"

namespace bide::brokers::remote {

namespace {

constexpr Milliseconds kWait{30'000};  // Of one poll.
constexpr Milliseconds kLongestBackoff{2'000};
constexpr int kFirstLeases = 64;                        // Before it is known how large jobs are.
constexpr std::size_t kAnswerBytes = 32 * 1024 * 1024;  // Wanted of one answer.
// More than a lease can have: every byte of a body may be escaped.
constexpr std::size_t kLeaseBytes = 7 * Limits::kBodyBytes;

}  // namespace

Poller::Poller(std::string name, SubscribeOptions options, LeaseSink sink, Owner owner)
    : name_(std::move(name)),
      options_(std::move(options)),
      sink_(std::move(sink)),
      owner_(std::move(owner)),
      credit_(std::max(options_.credit, 0)),
      most_leases_(kFirstLeases) {}

void Poller::set_credit(int credit) {
  {
    std::unique_lock lock(mutex_);
    credit_ = std::max(credit, 0);
    // A poll that asks for more than is wanted now is called back.
    if (claimed_ > 0 && claimed_ > room() && leaving_ == 0) leave(lock);
  }
  pump();
}

void Poller::set_delivery_limit(std::uint64_t deliveries) {
  {
    std::unique_lock lock(mutex_);
    delivery_limit_ = deliveries;
    if (claimed_ > 0 && claimed_ > room() && leaving_ == 0) leave(lock);
  }
  pump();
}

int Poller::room() const {
  if (!delivery_limit_) return credit_ - static_cast<int>(held_.size());
  if (*delivery_limit_ <= delivered_) return 0;
  return static_cast<int>(std::min<std::uint64_t>(*delivery_limit_ - delivered_, wire::kMostLeases));
}

void Poller::end() {
  {
    std::unique_lock lock(mutex_);
    ended_ = true;
    leave(lock);
  }
  // A sink that runs comes to its end. Not held any longer: leases that arrive now need it to be given back.
  delivering_.lock();
  delivering_.unlock();
  if (owner_.caller->is_own_thread()) return;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, owner_.farewell, [this] { return claimed_ == 0 && leaving_ == 0 && giving_back_ == 0; });
}

void Poller::abandon() {
  const std::lock_guard delivered(delivering_);
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

// Sent without the lock, which is given back held.
void Poller::leave(std::unique_lock<std::mutex>& lock) {
  leaving_ += 1;
  lock.unlock();
  owner_.caller->call(
      {.method = "POST", .path = "/v1/leases/leave", .body = wire::leave_request_json(name_), .patient = false},
      [self = shared_from_this()](Result<std::string>) {
        {
          const std::lock_guard relock(self->mutex_);
          platform::require(self->leaving_ > 0, "each leave is answered once");
          self->leaving_ -= 1;
          self->changed_.notify_all();
        }
        self->pump();
      });
  lock.lock();
}

void Poller::pump() {
  int max = 0;
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || waiting_ || claimed_ > 0 || leaving_ > 0) return;
    max = std::min(room(), most_leases_);
    if (max <= 0) return;
    claimed_ = max;
  }
  poll(max);
}

void Poller::poll(int max) {
  wire::LeaseRequest request;
  request.queues = options_.queues;
  request.max = max;
  request.wait = kWait;
  request.lease = std::clamp(options_.lease, wire::kShortestLease, wire::kLongestLease);
  request.worker = options_.worker;
  request.poller = name_;
  request.kinds = options_.kinds;
  const std::int64_t sent_ms = now_ms();
  // Sent by the caller at most once: a second one might take leases while those of the first are on their way.
  owner_.caller->call(
      {.method = "POST",
       .path = "/v1/leases",
       .body = wire::lease_request_json(request),
       .patient = false,
       .wait = kWait,
       // Leases of an answer that is not taken would run out: one that has what was asked for is never too large.
       .answer_bytes = kLeaseBytes * static_cast<std::size_t>(max)},
      [self = shared_from_this(), sent_ms](Result<std::string> answer) { self->take(sent_ms, std::move(answer)); });
}

void Poller::take(std::int64_t sent_ms, Result<std::string> answer) {
  Milliseconds held{0};
  Result<std::vector<Lease>> leases =
      answer ? wire::read_leases(*answer, &held) : Result<std::vector<Lease>>(answer.error());
  if (!leases) return take_failure(leases.error());
  // What the request took beyond what the server held it, it was on its way, there and back. Nobody knows how much of
  // it back; all of it is the safe guess.
  const Milliseconds travelled(std::max<std::int64_t>(now_ms() - sent_ms - held.count(), 0));
  for (Lease& lease : *leases) lease.age += travelled;
  const std::size_t count = leases->size();
  if (count > 0) deliver(std::move(*leases));
  {
    const std::lock_guard lock(mutex_);
    claimed_ = 0;
    failures_ = 0;
    most_leases_ = std::min(most_leases_ * 2, wire::kMostLeases);
    if (count > 0) most_leases_ = std::clamp(static_cast<int>(kAnswerBytes * count / answer->size()), 1, most_leases_);
    changed_.notify_all();
  }
  pump();
}

void Poller::take_failure(const Error& error) {
  // What may pass is tried again; the rest would be refused for ever. When there is nobody to tell, people may yet mend
  // it.
  const bool for_good = error.code == ErrorCode::kPermissionDenied || error.code == ErrorCode::kInvalidArgument ||
                        error.code == ErrorCode::kUnsupported;
  const bool refused = for_good && options_.on_failed;
  Milliseconds wait{0};
  const std::lock_guard delivering(delivering_);
  {
    const std::lock_guard lock(mutex_);
    claimed_ = 0;
    changed_.notify_all();
    if (ended_) return;
    ended_ = refused;
    waiting_ = !refused;
    wait = std::min(Milliseconds(50) * (1 << std::min(failures_++, 6)), kLongestBackoff);
  }
  if (refused) {
    const std::string text = owner_.caller->settings().place() + " gives no jobs to this worker: " + error.message;
    options_.on_failed({error.code, text});
    return;
  }
  owner_.caller->delayed_tasks().after(wait, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    {
      const std::lock_guard lock(self->mutex_);
      self->waiting_ = false;
    }
    self->pump();
  });
}

void Poller::deliver(std::vector<Lease> leases) {
  const std::lock_guard delivering(delivering_);
  {
    std::unique_lock lock(mutex_);
    if (ended_) {
      std::vector<LeaseRef> unwanted;
      for (const Lease& lease : leases) unwanted.push_back({lease.job.id, lease.token});
      giving_back_ += 1;
      lock.unlock();
      owner_.give_back(std::move(unwanted), [self = shared_from_this()] {
        const std::lock_guard relock(self->mutex_);
        self->giving_back_ -= 1;
        self->changed_.notify_all();
      });
      return;
    }
    delivered_ += leases.size();
    const std::int64_t now = now_ms();
    for (const Lease& lease : leases) {
      const std::int64_t begun = now - lease.age.count();
      const std::int64_t limit = begun + lease.job.time_limit.count();
      held_[lease.job.id] = {lease.token, std::min(begun + options_.lease.count(), limit), limit};
    }
    set_alarm(lock);
  }
  owner_.arrived(shared_from_this(), leases);
  sink_(std::move(leases));
}

void Poller::released(const LeaseRef& lease) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(lease.id);
    if (found == held_.end() || found->second.token != lease.token) return;
    held_.erase(found);
  }
  pump();
}

void Poller::extended(const LeaseRef& lease, std::int64_t at_ms) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(lease.id);
  if (found == held_.end() || found->second.token != lease.token) return;
  found->second.until_ms =
      std::max(found->second.until_ms, std::min(at_ms + options_.lease.count(), found->second.limit_ms));
}

void Poller::look_again() {
  {
    const std::lock_guard lock(mutex_);
    expire();
  }
  pump();
}

bool Poller::is_over() {
  const std::lock_guard lock(mutex_);
  expire();
  return ended_ && held_.empty();
}

std::vector<LeaseRef> Poller::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<LeaseRef> leases;
  for (const auto& [id, held] : held_) leases.push_back({id, held.token});
  return leases;
}

void Poller::expire() {
  const std::int64_t now = now_ms();
  std::erase_if(held_, [&](const auto& entry) {
    if (entry.second.until_ms > now) return false;
    owner_.expired({entry.first, entry.second.token});
    return true;
  });
}

// One alarm at a time, for the lease that ends first.
void Poller::set_alarm(std::unique_lock<std::mutex>& lock) {
  if (alarm_set_ || held_.empty() || ended_) return;
  std::int64_t first = held_.begin()->second.until_ms;
  for (const auto& [id, held] : held_) first = std::min(first, held.until_ms);
  alarm_set_ = true;
  const Milliseconds wait(std::max<std::int64_t>(first - now_ms(), 1));
  lock.unlock();
  owner_.caller->delayed_tasks().after(wait, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    {
      std::unique_lock relock(self->mutex_);
      self->alarm_set_ = false;
      self->expire();
      self->set_alarm(relock);
    }
    self->pump();
  });
  lock.lock();
}

}  // namespace bide::brokers::remote
