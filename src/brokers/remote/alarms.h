// Alarms: things to be done a little later, on one thread.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace bide::brokers::remote {

// Safe to use from any thread.
class Alarms {
 public:
  Alarms();
  ~Alarms() { stop(); }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

  // Must not block. After stop() it is done at once, on the calling thread.
  void after(std::chrono::milliseconds wait, std::function<void()> action);

  // What is still waiting is done now. Not to be called from an action.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  void run();

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::multimap<Clock::time_point, std::function<void()>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace bide::brokers::remote
