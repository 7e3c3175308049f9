#include "platform/timer_thread.h"

#include <utility>

namespace bide::platform {

TimerThread::TimerThread(Tick tick) : tick_(std::move(tick)), thread_([this] { run(); }) {}

TimerThread::~TimerThread() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void TimerThread::wake() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(woken_, true)) return;
  }
  changed_.notify_all();
}

void TimerThread::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_ = false;
    lock.unlock();
    const std::optional<Moment> next = tick_(std::chrono::steady_clock::now());
    lock.lock();
    const auto woken = [this] { return woken_ || stopping_; };
    if (next) {
      changed_.wait_until(lock, *next, woken);
    } else {
      changed_.wait(lock, woken);
    }
  }
}

DelayedTasks::DelayedTasks() : timer_(std::make_unique<TimerThread>([this](Moment now) { return run_until(now); })) {}

void DelayedTasks::after(std::chrono::milliseconds delay, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      const auto at = waiting_.emplace(std::chrono::steady_clock::now() + delay, std::move(task));
      if (at == waiting_.begin()) timer_->wake();
      return;
    }
  }
  task();
}

void DelayedTasks::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  timer_.reset();
  run_until(Moment::max());
}

std::optional<Moment> DelayedTasks::run_until(Moment now) {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty()) {
    if (waiting_.begin()->first > now) return waiting_.begin()->first;
    std::function<void()> task = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    lock.unlock();
    task();
    task = nullptr;  // What it holds may need the lock to end.
    lock.lock();
  }
  return std::nullopt;
}

}  // namespace bide::platform
