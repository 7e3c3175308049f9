#include "worker/settler.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include "platform/fatal.h"

namespace bide::worker {

namespace {

constexpr int kBatchesInFlight = 2;
constexpr std::size_t kBatchSize = 4096;
constexpr std::size_t kBytes = 64 * 1024 * 1024;
constexpr std::size_t kMostSpent = 4;  // Batches.
constexpr std::chrono::milliseconds kRetryWait{250};

std::size_t bytes_of(const Settlement& settlement) {
  std::size_t sum = 0;
  if (const Done* done = std::get_if<Done>(&settlement.outcome)) sum += done->result.size();
  if (const RetryAt* retry = std::get_if<RetryAt>(&settlement.outcome)) sum += retry->body ? retry->body->size() : 0;
  for (const Job& effect : settlement.effects) sum += effect.body.size();
  return sum;
}

// Whether a broker without atomic_effects must have something confirmed before it can acknowledge the job. A result may be
// the reply to a request.
bool publishes(const Settlement& settlement) {
  const Done* const done = std::get_if<Done>(&settlement.outcome);
  return !settlement.effects.empty() || done == nullptr || !done->result.empty();
}

bool is_lost(ErrorCode code) {
  return code == ErrorCode::kLeaseLost || code == ErrorCode::kNotFound || code == ErrorCode::kWrongState;
}

}  // namespace

Settler::Settler(Broker& broker, AttemptRunner& runner, HeldLeases& held)
    : broker_(&broker),
      publishing_goes_alone_(!broker.capabilities().atomic_effects),
      runner_(runner),
      held_(held) {}

Settler::Unconfirmed::Unconfirmed(Attempt& of, const Settlement& settlement_in)
    : attempt(&of), settlement(settlement_in), bytes(bytes_of(settlement_in)) {}

void Settler::settle(Attempt& attempt, Settlement settlement) {
  Unconfirmed kept(attempt, settlement);
  if (kept.bytes != 0) bytes_.fetch_add(kept.bytes, std::memory_order_relaxed);
  decltype(spent_) spent;  // Freed after the lock.
  std::unique_lock lock(mutex_);
  spent.swap(spent_);
  ++unconfirmed_;
  add(std::move(kept), std::move(settlement));
  send_while_possible(lock);
}

void Settler::add(Unconfirmed kept, Settlement given) {
  Batch& batch = publishing_goes_alone_ && publishes(given) ? alone_ : outbox_;
  batch.kept.push_back(std::move(kept));
  batch.given.push_back(std::move(given));
}

void Settler::drop(Attempt& attempt) {
  std::lock_guard lock(mutex_);
  ++stats_.lease_lost;
  held_.settled(attempt);
}

void Settler::send_while_possible(std::unique_lock<std::mutex>& lock) {
  while (!closed_ && !alone_.kept.empty()) {
    Batch batch;
    batch.kept.push_back(std::move(alone_.kept.back()));
    batch.given.push_back(std::move(alone_.given.back()));
    alone_.kept.pop_back();
    alone_.given.pop_back();
    send(std::move(batch), true, lock);
  }
  while (!closed_ && in_flight_ < kBatchesInFlight && !outbox_.kept.empty()) {
    Batch batch = std::exchange(outbox_, {});
    if (batch.kept.size() > kBatchSize) {
      const auto rest = static_cast<std::ptrdiff_t>(kBatchSize);
      std::move(batch.kept.begin() + rest, batch.kept.end(), std::back_inserter(outbox_.kept));
      std::move(batch.given.begin() + rest, batch.given.end(), std::back_inserter(outbox_.given));
      batch.kept.erase(batch.kept.begin() + rest, batch.kept.end());
      batch.given.resize(kBatchSize);
    }
    ++in_flight_;
    send(std::move(batch), false, lock);
  }
}

void Settler::send(Batch batch, bool alone, std::unique_lock<std::mutex>& lock) {
  ++calling_;
  lock.unlock();
  auto sent = std::make_shared<std::vector<Unconfirmed>>(std::move(batch.kept));
  broker_->settle(std::move(batch.given), [this, alone, owner = owner_.lock(), sent = std::move(sent)](
                                              const Result<std::vector<Status>>& answer) mutable {
    take_answer(std::move(sent), alone, answer);
  });
  lock.lock();
  --calling_;
  if (closed_) changed_.notify_all();
}

void Settler::take_answer(std::shared_ptr<std::vector<Unconfirmed>> sent, bool alone,
                          const Result<std::vector<Status>>& answer) {
  std::unique_lock lock(mutex_);
  if (!alone) {
    platform::require(in_flight_ > 0, "a batch of outcomes is answered once");
    --in_flight_;
  }
  for (std::size_t i = 0; i < sent->size(); ++i) {
    if (answer && i < answer->size()) {
      take_status((*sent)[i], (*answer)[i]);
    } else {
      take_status((*sent)[i], answer ? Status(Error{ErrorCode::kUnconfirmed, "the broker answered too little"})
                                     : Status(answer.error()));
    }
  }
  if (spent_.size() < kMostSpent) spent_.push_back(std::move(sent));
  changed_.notify_all();
  send_while_possible(lock);
  if (const std::string complaint = std::exchange(complaint_, {}); !complaint.empty()) {
    lock.unlock();  // The hook may ask for stats().
    runner_.report(complaint);
  }
}

void Settler::take_status(const Unconfirmed& sent, const Status& status) {
  Attempt& attempt = *sent.attempt;
  const Settlement& settlement = sent.settlement;
  if (status) {
    reported_ = false;
    switch (settlement.outcome.index()) {
      case 0: ++stats_.done; break;
      case 1: ++stats_.retried; break;
      case 2: ++stats_.dead; break;
      default: ++stats_.returned; break;
    }
    forget(sent);
    return;
  }
  const Error& error = status.error();
  if (is_lost(error.code) || closed_) {
    ++stats_.lease_lost;
    forget(sent);
    return;
  }
  if (error.code == ErrorCode::kInvalidArgument && !attempt.refused()) {
    attempt.set_refused();  // Once: a failure without effects is refused only by a broker that refuses everything.
    Settlement failure{.lease = settlement.lease,
                       .outcome = runner_.decide(attempt.lease(), Fault::kFailed,
                                                 "the broker refused the outcome: " + error.message)};
    bytes_.fetch_sub(sent.bytes, std::memory_order_relaxed);
    add(Unconfirmed(attempt, failure), failure);
    return;
  }
  ++stats_.settle_retries;
  if (!reported_) {
    reported_ = true;
    complaint_ = "the broker does not confirm outcomes, trying again: " + error.message;
  }
  late_.push_back({sent, std::chrono::steady_clock::now() + kRetryWait});
}

void Settler::forget(const Unconfirmed& sent) {
  if (sent.bytes != 0) bytes_.fetch_sub(sent.bytes, std::memory_order_relaxed);
  platform::require(unconfirmed_ > 0, "an outcome is confirmed once");
  --unconfirmed_;
  held_.settled(*sent.attempt);
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
    if (late.what.attempt->lost()) {
      ++stats_.lease_lost;
      forget(late.what);
    } else if (late.when <= now) {
      Settlement given = late.what.settlement;
      add(std::move(late.what), std::move(given));
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
    forget(late.what);
  }
  for (Batch* batch : {&outbox_, &alone_}) {
    for (const Unconfirmed& unsent : std::exchange(*batch, {}).kept) {
      ++stats_.lease_lost;
      forget(unsent);
    }
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
