// A worker on a broker whose answers the test decides; for the unit tests of this folder.

#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bide/client.h"
#include "bide/worker.h"
#include "support/fake_broker.h"

namespace bide::worker {

// Something that one thread waits for and another makes happen.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  bool open_ = false;
};

// Lines that several threads write and the test reads.
class Notes {
 public:
  void add(std::string line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lines_.size() >= count; });
    return lines_;
  }
  std::vector<std::string> all() const {
    std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

struct Bench {
  explicit Bench(WorkerOptions options = {.concurrency = 2}) : worker(Client(broker), with_name(std::move(options))) {
    worker.on_problem([this](std::string_view line) { problems.add(std::string(line)); });
  }

  // What became of the first job.
  Outcome outcome() { return broker->wait_for_settled(1)[0].outcome; }

  std::shared_ptr<support::FakeBroker> broker = std::make_shared<support::FakeBroker>();
  Notes problems;
  Worker worker;

 private:
  static WorkerOptions with_name(WorkerOptions options) {
    if (options.name.empty()) options.name = "tester";
    return options;
  }
};

}  // namespace bide::worker
