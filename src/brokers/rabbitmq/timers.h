// Timers: tasks of one thread for later.

#pragma once

#include <chrono>
#include <functional>
#include <queue>
#include <utility>

#include "bide/job.h"

namespace bide::brokers::rabbitmq {

using Steady = std::chrono::steady_clock::time_point;

class Timers {
 public:
  void after(Milliseconds wait, std::function<void()> task) {
    waiting_.push({std::chrono::steady_clock::now() + wait, std::move(task)});
  }

  // Runs what is due. Returns when the next one is.
  Steady run_due() {
    while (!waiting_.empty() && waiting_.top().when <= std::chrono::steady_clock::now()) {
      const std::function<void()> task = waiting_.top().task;
      waiting_.pop();
      task();
    }
    return waiting_.empty() ? Steady::max() : waiting_.top().when;
  }

 private:
  struct Timer {
    Steady when;
    std::function<void()> task;
    bool operator<(const Timer& other) const { return when > other.when; }  // The earliest on top.
  };

  std::priority_queue<Timer> waiting_;
};

}  // namespace bide::brokers::rabbitmq
