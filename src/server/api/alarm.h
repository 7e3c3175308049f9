// Alarm: one thread that does what is due. It is told each time when the next thing is, and can be poked when something
// came in between.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace bide::server {

using Moment = std::chrono::steady_clock::time_point;

class Alarm {
 public:
  // Does what is due by now and says when to call again; nothing: not before a poke.
  using Tick = std::function<std::optional<Moment>(Moment now)>;

  explicit Alarm(Tick tick);
  ~Alarm();  // Waits for a tick under way.

  void poke();

 private:
  void run();

  const Tick tick_;

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  bool poked_ = true;
  bool ended_ = false;

  std::thread thread_;
};

}  // namespace bide::server
