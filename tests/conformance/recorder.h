// Recorder: a sink that keeps every lease it is given, with the time of its arrival, and lets a test wait for them.
// Consumer: a recorder and the subscription that feeds it. Pending: the answer of a call that may take its time.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"

namespace bide::conformance {

// How long to wait for something that must come, in real time. Only a broken broker ever uses it up: a minute, or what
// BIDE_PATIENCE_MS says.
std::chrono::milliseconds patience();

struct Arrival {
  Lease lease;
  Time at;
};

// Copies share what was recorded: a sink may outlive the test's own copy.
class Recorder {
 public:
  explicit Recorder(std::function<Time()> now);

  LeaseSink sink() const;

  // True when so many have arrived since the beginning; false when patience ran out.
  [[nodiscard]] bool wait_for(std::size_t count) const;
  // The oldest that was not taken yet. Throws when patience ran out.
  Lease take();
  std::vector<Lease> take(std::size_t count);

  std::vector<Arrival> arrivals() const;
  std::vector<JobId> ids() const;  // In the order of arrival.
  std::size_t count() const;
  std::size_t count_before(Time limit) const;

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;
};

class Consumer {
 public:
  Consumer(Recorder recorder, std::unique_ptr<Subscription> subscription)
      : recorder_(std::move(recorder)), subscription_(std::move(subscription)) {}

  Recorder& leases() { return recorder_; }
  void set_credit(int credit) { subscription_->set_credit(credit); }
  void set_delivery_limit(std::uint64_t deliveries) { subscription_->set_delivery_limit(deliveries); }
  void unsubscribe() { subscription_.reset(); }

 private:
  Recorder recorder_;
  std::unique_ptr<Subscription> subscription_;
};

template <class T>
class Pending {
 public:
  Completion<T> completion() const {
    return [shared = shared_](Result<T> result) {
      std::lock_guard lock(shared->mutex);
      shared->answers += 1;
      shared->result.emplace(std::move(result));
      shared->arrived.notify_all();
    };
  }

  bool answered() const {
    std::lock_guard lock(shared_->mutex);
    return shared_->result.has_value();
  }

  // Nothing when patience ran out.
  std::optional<Result<T>> wait() const {
    std::unique_lock lock(shared_->mutex);
    shared_->arrived.wait_for(lock, patience(), [this] { return shared_->result.has_value(); });
    return shared_->result;
  }

  // A completion runs exactly once.
  int answers() const {
    std::lock_guard lock(shared_->mutex);
    return shared_->answers;
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable arrived;
    int answers = 0;
    std::optional<Result<T>> result;
  };

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace bide::conformance
