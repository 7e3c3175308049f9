#include "server/api/alarm.h"

#include <utility>

namespace bide::server {

Alarm::Alarm(Tick tick) : tick_(std::move(tick)), thread_([this] { run(); }) {}

Alarm::~Alarm() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Alarm::poke() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(poked_, true)) return;
  }
  changed_.notify_all();
}

void Alarm::run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    poked_ = false;
    lock.unlock();
    const std::optional<Moment> next = tick_(std::chrono::steady_clock::now());
    lock.lock();
    const auto woken = [this] { return poked_ || ended_; };
    if (next) {
      changed_.wait_until(lock, *next, woken);
    } else {
      changed_.wait(lock, woken);
    }
  }
}

}  // namespace bide::server
