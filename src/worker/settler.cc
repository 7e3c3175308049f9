#include "worker/settler.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace bide::worker {

namespace {

constexpr int kBatchesInFlight = 2;
constexpr std::size_t kBatchSize = 4096;
constexpr std::size_t kBytes = 64 * 1024 * 1024;
constexpr std::chrono::milliseconds kRetryWait{250};

std::size_t bytes_of(const Settlement& settlement) {
  std::size_t sum = 0;
  if (const Done* done = std::get_if<Done>(&settlement.outcome)) sum += done->result.size();
  if (const RetryAt* retry = std::get_if<RetryAt>(&settlement.outcome)) sum += retry->body ? retry->body->size() : 0;
  for (const Job& effect : settlement.effects) sum += effect.body.size();
  return sum;
}

bool is_lost(ErrorCode code) { return code == ErrorCode::kLeaseLost || code == ErrorCode::kNotFound; }

}  // namespace

Settler::Settler(Broker& broker, AttemptRunner& runner, HeldLeases& held)
    : broker_(&broker), runner_(runner), held_(held) {}

void Settler::Batch::add(Attempt* attempt, Settlement settlement, Settlement copy) {
  attempts.push_back(attempt);
  settlements.push_back(std::move(settlement));
  copies.push_back(std::move(copy));
}

void Settler::settle(Attempt& attempt, Settlement settlement) {
  if (const std::size_t bytes = bytes_of(settlement)) bytes_.fetch_add(bytes, std::memory_order_relaxed);
  Settlement copy = settlement;
  std::shared_ptr<Batch> spent;  // Freed after the lock.
  std::unique_lock lock(mutex_);
  spent = std::move(spent_);
  ++unconfirmed_;
  outbox_.add(&attempt, std::move(settlement), std::move(copy));
  send_while_possible(lock);
}

void Settler::drop(Attempt& attempt) {
  std::lock_guard lock(mutex_);
  ++stats_.lease_lost;
  held_.settled(attempt);
}

void Settler::send_while_possible(std::unique_lock<std::mutex>& lock) {
  while (!closed_ && in_flight_ < kBatchesInFlight && !outbox_.attempts.empty()) {
    Batch batch = std::exchange(outbox_, {});
    if (batch.attempts.size() > kBatchSize) {
      for (std::size_t i = kBatchSize; i < batch.attempts.size(); ++i) {
        outbox_.add(batch.attempts[i], std::move(batch.settlements[i]), std::move(batch.copies[i]));
      }
      batch.attempts.resize(kBatchSize);
      batch.settlements.resize(kBatchSize);
      batch.copies.resize(kBatchSize);
    }
    ++in_flight_;
    ++calling_;
    lock.unlock();
    std::vector<Settlement> given = std::move(batch.settlements);
    broker_->settle(std::move(given),
                    [this, owner = owner_.lock(), sent = std::make_shared<Batch>(std::move(batch))](
                        const Result<std::vector<Status>>& answer) mutable { take_answer(std::move(sent), answer); });
    lock.lock();
    --calling_;
    if (closed_) changed_.notify_all();
  }
}

void Settler::take_answer(std::shared_ptr<Batch> sent, const Result<std::vector<Status>>& answer) {
  std::unique_lock lock(mutex_);
  --in_flight_;
  for (std::size_t i = 0; i < sent->attempts.size(); ++i) {
    if (answer && i < answer->size()) {
      take_status(*sent->attempts[i], sent->copies[i], (*answer)[i]);
    } else {
      take_status(*sent->attempts[i], sent->copies[i],
                  answer ? Status(Error{ErrorCode::kUnavailable, "the broker answered too little"})
                         : Status(answer.error()));
    }
  }
  spent_ = std::move(sent);
  changed_.notify_all();
  send_while_possible(lock);
  if (const std::string complaint = std::exchange(complaint_, {}); !complaint.empty()) {
    lock.unlock();  // The hook may ask for stats().
    runner_.report(complaint);
  }
}

void Settler::take_status(Attempt& attempt, const Settlement& settlement, const Status& status) {
  if (status) {
    reported_ = false;
    switch (settlement.outcome.index()) {
      case 0: ++stats_.done; break;
      case 1: ++stats_.retried; break;
      case 2: ++stats_.dead; break;
      default: ++stats_.returned; break;
    }
    forget(attempt, settlement);
    return;
  }
  const Error& error = status.error();
  if (is_lost(error.code) || closed_) {
    ++stats_.lease_lost;
    forget(attempt, settlement);
    return;
  }
  if (error.code == ErrorCode::kInvalidArgument && !attempt.refused()) {
    attempt.set_refused();  // Once: a failure without effects is refused only by a broker that refuses everything.
    Settlement failure{.lease = settlement.lease,
                       .outcome = runner_.decide(attempt.lease(), Fault::kFailed,
                                                 "the broker refused the outcome: " + error.message)};
    bytes_.fetch_sub(bytes_of(settlement), std::memory_order_relaxed);
    outbox_.add(&attempt, failure, failure);
    return;
  }
  ++stats_.settle_retries;
  if (!reported_) {
    reported_ = true;
    complaint_ = "the broker does not confirm outcomes, trying again: " + error.message;
  }
  late_.push_back({&attempt, settlement, std::chrono::steady_clock::now() + kRetryWait});
}

void Settler::forget(Attempt& attempt, const Settlement& settlement) {
  if (const std::size_t bytes = bytes_of(settlement)) bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  --unconfirmed_;
  held_.settled(attempt);
}

void Settler::wait_for_room() {
  if (bytes_.load(std::memory_order_relaxed) <= kBytes) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || bytes_.load(std::memory_order_relaxed) <= kBytes; });
}

Moment Settler::send_late(Moment now) {
  std::unique_lock lock(mutex_);
  Moment next = Moment::max();
  std::vector<Late> later;
  for (Late& late : late_) {
    if (late.attempt->lost()) {
      ++stats_.lease_lost;
      forget(*late.attempt, late.settlement);
    } else if (late.when <= now) {
      outbox_.add(late.attempt, late.settlement, late.settlement);
    } else {
      next = std::min(next, late.when);
      later.push_back(std::move(late));
    }
  }
  late_ = std::move(later);
  changed_.notify_all();
  send_while_possible(lock);
  return next;
}

bool Settler::wait_until_empty(Moment until) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, until, [this] { return empty(); });
}

void Settler::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  for (Late& late : std::exchange(late_, {})) {
    ++stats_.lease_lost;
    forget(*late.attempt, late.settlement);
  }
  const Batch unsent = std::exchange(outbox_, {});
  for (std::size_t i = 0; i < unsent.attempts.size(); ++i) {
    ++stats_.lease_lost;
    forget(*unsent.attempts[i], unsent.copies[i]);
  }
  changed_.wait(lock, [this] { return calling_ == 0; });
  changed_.notify_all();
}

void Settler::add_to(WorkerStats& stats) const {
  std::lock_guard lock(mutex_);
  stats.done = stats_.done;
  stats.retried = stats_.retried;
  stats.dead = stats_.dead;
  stats.returned = stats_.returned;
  stats.lease_lost = stats_.lease_lost;
  stats.settle_retries = stats_.settle_retries;
}

}  // namespace bide::worker
