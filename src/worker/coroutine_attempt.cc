#include "worker/coroutine_attempt.h"

#include "worker/lease_queue.h"

namespace bide::worker {

CoroutineAttempt::CoroutineAttempt(std::shared_ptr<LeaseBatch> batch, Attempt& attempt, std::shared_ptr<void> owner,
                                   LeaseQueue& queue)
    : batch_(std::move(batch)),
      attempt_(attempt),
      owner_(std::move(owner)),
      queue_(queue),
      context_(attempt.lease(), attempt),
      started_(std::chrono::steady_clock::now()) {}

std::coroutine_handle<> CoroutineAttempt::begin(const TaskHandler& handler) {
  self_ = shared_from_this();
  try {
    task_.emplace(handler(context_));
  } catch (...) {
    thrown_ = std::current_exception();
    return nullptr;
  }
  return task_->prepare(self_, [this] { end(); });
}

bool CoroutineAttempt::resume(std::coroutine_handle<> waiting) {
  const auto self = shared_from_this();
  thread_.store(std::this_thread::get_id());
  attempt_.enter_thread();
  waiting.resume();
  attempt_.leave_thread();
  // Another thread may run it by now.
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id newest = here;
  thread_.compare_exchange_strong(newest, std::thread::id());
  const bool ended_here = ended_on_.load() == here;
  // What resumed it meanwhile found that nobody will.
  if (!ended_here && dropped_.load() && attempt_.threads() == 0) clear();
  return ended_here;
}

// It may end on a thread that is not one of the worker's, or runs another attempt, when something else has resumed it.
void CoroutineAttempt::end() {
  const std::thread::id here = std::this_thread::get_id();
  if (thread_.load() == here)
    ended_on_.store(here);
  else
    resume_later(nullptr);
}

void CoroutineAttempt::resume_later(std::coroutine_handle<> waiting) {
  const auto self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    if (self_ == nullptr) return;
  }
  if (!queue_.post({self, waiting})) drop();
}

void CoroutineAttempt::drop() {
  dropped_.store(true);
  if (attempt_.threads() == 0) clear();
}

Outcome CoroutineAttempt::take() {
  if (thrown_) std::rethrow_exception(thrown_);
  return task_->take();
}

void CoroutineAttempt::clear() {
  // Until the end of this, and outside the lock: two threads may find that nobody else will do it.
  std::shared_ptr<CoroutineAttempt> last;
  std::optional<Task<Outcome>> ended;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(self_);
    ended.swap(task_);
  }
}

}  // namespace bide::worker
