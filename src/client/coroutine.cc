#include "bide/coroutine.h"

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "platform/timer_thread.h"

namespace bide {

struct Sleep::Alarm : coroutine::Wait {
  using Times = std::multimap<platform::Moment, std::shared_ptr<Alarm>>;

  std::atomic<bool> rung = false;  // By the time or by the stop, whichever is first.
  bool in_time = false;
  Times::iterator place = {};  // Of the clock; valid while it is set.
  bool is_set = false;

  void ring(bool of_time) {
    if (rung.exchange(true)) return;
    in_time = of_time;
    end();
  }

  // All sleeps of the process. Never destroyed: coroutines may outlive whatever there is.
  class Clock {
   public:
    static Clock& instance() {
      static Clock& clock = *new Clock();
      return clock;
    }

    void set(const std::shared_ptr<Alarm>& alarm, platform::Moment when) {
      const std::lock_guard lock(mutex_);
      alarm->place = times_.emplace(when, alarm);
      alarm->is_set = true;
      if (alarm->place == times_.begin()) timer_.wake();
    }

    void unset(Alarm& alarm) {
      std::shared_ptr<Alarm> removed;  // Freed after the lock.
      const std::lock_guard lock(mutex_);
      if (!std::exchange(alarm.is_set, false)) return;
      removed = std::move(alarm.place->second);
      times_.erase(alarm.place);
    }

   private:
    Clock() : timer_([this](platform::Moment now) { return tick(now); }) {}

    std::optional<platform::Moment> tick(platform::Moment now) {
      std::unique_lock lock(mutex_);
      while (!times_.empty() && times_.begin()->first <= now) {
        const std::shared_ptr<Alarm> alarm = times_.extract(times_.begin()).mapped();
        alarm->is_set = false;
        lock.unlock();
        alarm->ring(true);
        lock.lock();
      }
      if (times_.empty()) return std::nullopt;
      return times_.begin()->first;
    }

    std::mutex mutex_;  // Guards the times, and what alarms know of their places.
    Times times_;
    platform::TimerThread timer_;
  };
};

void Sleep::Stopper::operator()() const {
  Alarm::Clock::instance().unset(*alarm);
  alarm->ring(false);
}

bool Sleep::begin(std::shared_ptr<Resumer> resumer, std::coroutine_handle<> waiting) {
  constexpr Milliseconds kLongest = std::chrono::hours(24 * 365 * 100);
  const auto alarm = std::make_shared<Alarm>();
  alarm->resumer = std::move(resumer);
  alarm->waiting = waiting;
  alarm_ = alarm;
  Alarm::Clock::instance().set(alarm, std::chrono::steady_clock::now() + std::min(time_, kLongest));
  // After it is set, so that the callback finds what it is to take back.
  if (stop_.stop_possible()) on_stop_.emplace(stop_, Stopper{alarm});
  return alarm->begin();
}

bool Sleep::await_resume() { return alarm_ ? alarm_->in_time : !stop_.stop_requested(); }

}  // namespace bide
