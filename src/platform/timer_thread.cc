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

}  // namespace bide::platform
