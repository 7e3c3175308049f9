#include "brokers/remote/alarms.h"

#include <utility>

namespace bide::brokers::remote {

Alarms::Alarms() {
  thread_ = std::thread([this] { run(); });
}

void Alarms::after(std::chrono::milliseconds wait, std::function<void()> action) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      const auto at = waiting_.emplace(Clock::now() + wait, std::move(action));
      if (at == waiting_.begin()) changed_.notify_one();
      return;
    }
  }
  action();
}

void Alarms::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Alarms::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_ || !waiting_.empty()) {
    if (waiting_.empty()) {
      changed_.wait(lock);
    } else if (!stopping_ && waiting_.begin()->first > Clock::now()) {
      changed_.wait_until(lock, waiting_.begin()->first);
    } else {
      std::function<void()> action = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      lock.unlock();
      action();
      action = nullptr;  // What it holds may need the lock to end.
      lock.lock();
    }
  }
}

}  // namespace bide::brokers::remote
