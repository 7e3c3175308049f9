#include "worker/intake.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace bide::worker {

namespace {

constexpr std::chrono::microseconds kShortHandler{50};
constexpr std::chrono::milliseconds kLookoutPeriod{1};

}  // namespace

Intake::Intake() : cores_(std::max(1, static_cast<int>(std::thread::hardware_concurrency()))) {}

bool Intake::brisk() const { return measured() && typical_duration() < kShortHandler; }

void Intake::add(std::shared_ptr<LeaseBatch> batch) {
  std::lock_guard lock(mutex_);
  batches_.push_back(std::move(batch));
  if (idle_ > 0 && (!brisk() || busy_ == 0)) {
    arrived_.notify_one();
  } else {
    wake_another();
  }
}

Attempt* Intake::claim(std::shared_ptr<LeaseBatch>& seat) {
  if (seat) {
    if (Attempt* attempt = seat->claim()) return attempt;
  }
  std::shared_ptr<LeaseBatch> finished = std::move(seat);  // Freed, perhaps, but not under the lock.
  std::unique_lock lock(mutex_);
  if (finished) --busy_;
  while (true) {
    drop_exhausted();
    if (closed_) return nullptr;
    if (!batches_.empty()) {
      seat = batches_.front();
      if (Attempt* attempt = seat->claim()) {
        ++busy_;
        wake_another();
        return attempt;
      }
      seat.reset();
      continue;
    }
    ++idle_;
    arrived_.wait(lock);
    --idle_;
    while (std::exchange(lookout_wanted_, false)) {
      if (!others_get_on(lock)) break;
      lookout_wanted_ = brisk() && !batches_.empty() && !closed_;
    }
  }
}

// Stands by as the lookout for one period. True: the others got on with the work, or there is none.
bool Intake::others_get_on(std::unique_lock<std::mutex>& lock) {
  if (batches_.empty()) return true;
  const LeaseBatch* first = batches_.front().get();
  const std::size_t position = first->position();
  lookout_ = true;
  ++idle_;
  arrived_.wait_for(lock, kLookoutPeriod);
  --idle_;
  lookout_ = false;
  drop_exhausted();
  return batches_.empty() || batches_.front().get() != first || first->position() != position;
}

// With the lock held, when a thread has found work and may have left some.
void Intake::wake_another() {
  if (idle_ == 0 || batches_.empty()) return;
  if (batches_.size() == 1 && batches_.front()->exhausted()) return;
  if (!brisk() || busy_ < cores_) {
    arrived_.notify_one();
  } else if (!lookout_ && !lookout_wanted_) {
    lookout_wanted_ = true;
    arrived_.notify_one();
  }
}

void Intake::drop_exhausted() {
  while (!batches_.empty() && batches_.front()->exhausted()) batches_.pop_front();
}

void Intake::leave(std::shared_ptr<LeaseBatch>& seat) {
  if (!seat) return;
  std::shared_ptr<LeaseBatch> left = std::move(seat);
  std::lock_guard lock(mutex_);
  --busy_;
}

std::vector<std::shared_ptr<LeaseBatch>> Intake::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  arrived_.notify_all();
  std::vector<std::shared_ptr<LeaseBatch>> rest(batches_.begin(), batches_.end());
  batches_.clear();
  return rest;
}

std::vector<std::shared_ptr<LeaseBatch>> Intake::take_stale(Moment since) {
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

void Intake::note_duration(std::chrono::nanoseconds took) {
  const std::int64_t typical = typical_ns_.load(kRelaxed);
  // Threads may overwrite one another's note: it is a rough figure.
  if (measured()) {
    typical_ns_.store(typical + (took.count() - typical) / 16, kRelaxed);
  } else {
    typical_ns_.store(took.count(), kRelaxed);
    measured_.store(true, kRelaxed);
  }
}

int Intake::waiting() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& batch : batches_) sum += batch->unclaimed();
  return static_cast<int>(sum);
}

int Intake::idle() const {
  std::lock_guard lock(mutex_);
  return idle_;
}

}  // namespace bide::worker
