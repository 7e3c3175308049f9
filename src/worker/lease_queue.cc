#include "worker/lease_queue.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace bide::worker {

namespace {

constexpr std::chrono::microseconds kShortHandler{50};
constexpr std::chrono::milliseconds kStandbyPeriod{1};

}  // namespace

LeaseQueue::LeaseQueue() : cores_(std::max(1, static_cast<int>(std::thread::hardware_concurrency()))) {}

bool LeaseQueue::handlers_are_short() const { return measured() && typical_duration() < kShortHandler; }

void LeaseQueue::add(std::shared_ptr<LeaseBatch> batch) {
  std::lock_guard lock(mutex_);
  batches_.push_back(std::move(batch));
  if (idle_ > 0 && (!handlers_are_short() || busy_ == 0)) {
    arrived_.notify_one();
  } else {
    wake_another();
  }
}

void LeaseQueue::add_coroutine() {
  std::lock_guard lock(mutex_);
  ++coroutines_;
}

void LeaseQueue::remove_coroutine() {
  std::lock_guard lock(mutex_);
  if (--coroutines_ == 0 && closed_) arrived_.notify_all();
}

int LeaseQueue::coroutines() const {
  std::lock_guard lock(mutex_);
  return coroutines_;
}

bool LeaseQueue::post(Resumption resumption) {
  std::lock_guard lock(mutex_);
  if (ended_) return false;
  resumptions_.push_back(std::move(resumption));
  can_go_on_.store(true, kRelaxed);
  if (idle_ > 0) arrived_.notify_one();
  return true;
}

std::deque<Resumption> LeaseQueue::end() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  can_go_on_.store(false, kRelaxed);
  arrived_.notify_all();
  return std::exchange(resumptions_, {});
}

// With the lock held.
bool LeaseQueue::take_resumption(Resumption* resumption) {
  if (resumption == nullptr || resumptions_.empty()) return false;
  *resumption = std::move(resumptions_.front());
  resumptions_.pop_front();
  if (resumptions_.empty()) can_go_on_.store(false, kRelaxed);
  else if (idle_ > 0) arrived_.notify_one();
  return true;
}

Attempt* LeaseQueue::claim(std::shared_ptr<LeaseBatch>& batch_of_thread, Resumption* resumption, bool lease_first) {
  if (!lease_first && can_go_on_.load(kRelaxed)) {
    std::lock_guard lock(mutex_);
    if (take_resumption(resumption)) return nullptr;
  }
  if (batch_of_thread) {
    if (Attempt* attempt = batch_of_thread->claim()) return attempt;
  }
  std::shared_ptr<LeaseBatch> finished = std::move(batch_of_thread);  // Freed, perhaps, but not under the lock.
  std::unique_lock lock(mutex_);
  if (finished) --busy_;
  while (true) {
    if (!lease_first && take_resumption(resumption)) return nullptr;
    drop_exhausted();
    if (!closed_ && !batches_.empty()) {
      batch_of_thread = batches_.front();
      if (Attempt* attempt = batch_of_thread->claim()) {
        ++busy_;
        wake_another();
        return attempt;
      }
      batch_of_thread.reset();
      continue;
    }
    if (take_resumption(resumption)) return nullptr;
    if (closed_ && (ended_ || coroutines_ == 0)) return nullptr;
    ++idle_;
    arrived_.wait(lock);
    --idle_;
    while (std::exchange(standby_wanted_, false)) {
      if (!others_make_progress(lock)) break;
      standby_wanted_ = handlers_are_short() && !batches_.empty() && resumptions_.empty() && !closed_;
    }
  }
}

// On standby for one period. True: the others have made progress, or there is nothing to do.
bool LeaseQueue::others_make_progress(std::unique_lock<std::mutex>& lock) {
  if (batches_.empty()) return true;
  const LeaseBatch* first = batches_.front().get();
  const std::size_t position = first->position();
  standby_ = true;
  ++idle_;
  arrived_.wait_for(lock, kStandbyPeriod);
  --idle_;
  standby_ = false;
  drop_exhausted();
  return batches_.empty() || batches_.front().get() != first || first->position() != position;
}

// With the lock held, when a thread has found work and may have left some.
void LeaseQueue::wake_another() {
  if (idle_ == 0 || batches_.empty()) return;
  if (batches_.size() == 1 && batches_.front()->exhausted()) return;
  if (!handlers_are_short() || busy_ < cores_) {
    arrived_.notify_one();
  } else if (!standby_ && !standby_wanted_) {
    standby_wanted_ = true;
    arrived_.notify_one();
  }
}

void LeaseQueue::drop_exhausted() {
  while (!batches_.empty() && batches_.front()->exhausted()) batches_.pop_front();
}

void LeaseQueue::leave(std::shared_ptr<LeaseBatch>& batch_of_thread) {
  if (!batch_of_thread) return;
  std::shared_ptr<LeaseBatch> left = std::move(batch_of_thread);
  std::lock_guard lock(mutex_);
  --busy_;
}

std::vector<std::shared_ptr<LeaseBatch>> LeaseQueue::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  arrived_.notify_all();
  std::vector<std::shared_ptr<LeaseBatch>> rest(batches_.begin(), batches_.end());
  batches_.clear();
  return rest;
}

std::vector<std::shared_ptr<LeaseBatch>> LeaseQueue::take_stale(Moment since) {
  std::vector<std::shared_ptr<LeaseBatch>> stale;
  std::lock_guard lock(mutex_);
  drop_exhausted();
  // They lie in the order of their arrival, and some were longer on their way than others.
  std::erase_if(batches_, [&](std::shared_ptr<LeaseBatch>& batch) {
    if (batch->given() >= since) return false;
    stale.push_back(std::move(batch));
    return true;
  });
  return stale;
}

void LeaseQueue::note_duration(std::chrono::nanoseconds took) {
  const std::int64_t typical = typical_ns_.load(kRelaxed);
  // Threads may overwrite one another's note: it is a rough figure.
  if (measured()) {
    typical_ns_.store(typical + (took.count() - typical) / 16, kRelaxed);
  } else {
    typical_ns_.store(took.count(), kRelaxed);
    measured_.store(true, kRelaxed);
  }
}

int LeaseQueue::waiting() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& batch : batches_) sum += batch->unclaimed();
  return static_cast<int>(sum);
}

int LeaseQueue::idle() const {
  std::lock_guard lock(mutex_);
  return idle_;
}

}  // namespace bide::worker
