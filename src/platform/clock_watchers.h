// ClockWatchers: the watches of a clock, called when it jumps. Safe to share between threads.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace bide::platform {

class ClockWatchers {
 public:
  // See Clock::watch(). A watch may outlive the clock.
  std::shared_ptr<void> add(std::function<void()> jumped) const {
    const std::lock_guard lock(all_->mutex);
    const std::uint64_t number = all_->last++;
    all_->watchers.emplace(number, std::move(jumped));
    return std::shared_ptr<void>(nullptr, [all = all_, number](void*) {
      const std::lock_guard removing(all->mutex);
      all->watchers.erase(number);
    });
  }
  void call() const {
    const std::lock_guard lock(all_->mutex);
    for (const auto& [number, jumped] : all_->watchers) jumped();
  }

 private:
  struct All {
    std::mutex mutex;  // Guards everything below.
    std::map<std::uint64_t, std::function<void()>> watchers;
    std::uint64_t last = 0;
  };
  const std::shared_ptr<All> all_ = std::make_shared<All>();
};

}  // namespace bide::platform
