// FakeBroker: a broker whose answers the test decides, for faults that a real one shows only with luck. It hands out
// what it was given, in order and within the credit; settled is settled: nothing comes again by itself.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bide/broker.h"

namespace bide::support {

class FakeBroker : public Broker {
 public:
  // Decided by the test before the worker starts; called on the broker's thread.
  std::function<Status(const Settlement&)> on_settle = [](const Settlement&) { return Status(); };
  std::function<Result<Extended>(const LeaseRef&)> on_extend = [](const LeaseRef&) { return Extended{}; };

  FakeBroker() : thread_([this] { serve(); }) {}

  ~FakeBroker() override {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      woken_.notify_all();
    }
    thread_.join();
  }

  // The lease of a first attempt.
  static Lease lease_of(Job job) {
    static std::atomic<std::uint64_t> next = 1;
    const std::uint64_t token = next++;
    std::array<std::uint8_t, JobId::kSize> bytes{};
    for (std::size_t i = 0; i < 8; ++i) bytes[15 - i] = static_cast<std::uint8_t>(token >> (8 * i));
    Lease lease;
    lease.job = std::move(job);
    if (lease.job.id.is_nil()) lease.job.id = JobId(bytes);
    lease.token = token;
    return lease;
  }

  void give(Lease lease) {
    std::lock_guard lock(mutex_);
    ready_.push_back(std::move(lease));
    woken_.notify_all();
  }
  void give(Job job) { give(lease_of(std::move(job))); }
  void give(const std::string& kind, int count = 1) {
    for (int i = 0; i < count; ++i) give(Job{.kind = kind});
  }

  // Waits until so many settlements were accepted and whoever settled has been told; all of them, in order.
  std::vector<Settlement> wait_for_settled(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return told_ >= count; });
    return settled_;
  }
  std::vector<Settlement> settled() const {
    std::lock_guard lock(mutex_);
    return settled_;
  }
  std::size_t not_given_out() const {
    std::lock_guard lock(mutex_);
    return ready_.size();
  }
  std::size_t most_unsettled() const {
    std::lock_guard lock(mutex_);
    return most_unsettled_;
  }
  int credit() const {
    std::lock_guard lock(mutex_);
    return credit_;
  }
  // How many leases it may deliver in all, if that was said.
  std::optional<std::uint64_t> delivery_limit() const {
    std::lock_guard lock(mutex_);
    return delivery_limit_;
  }
  std::vector<LeaseRef> marked() const {
    std::lock_guard lock(mutex_);
    return marked_;
  }
  // Waits until somebody asked for an extension of this lease, so many times.
  void wait_for_extensions(std::uint64_t token, int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return extensions_[token] >= count; });
  }
  SubscribeOptions subscribed() const {
    std::lock_guard lock(mutex_);
    return subscribed_;
  }
  bool has_subscriber() const {
    std::lock_guard lock(mutex_);
    return sink_ != nullptr;
  }

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override {
    post([this, jobs = std::move(jobs), done = std::move(done)] {
      std::vector<Result<Enqueued>> results;
      for (const Job& job : jobs) {
        Lease lease = lease_of(job);
        results.emplace_back(Enqueued{.id = lease.job.id});
        give(std::move(lease));
      }
      done(std::move(results));
    });
  }

  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override {
    std::lock_guard lock(mutex_);
    subscribed_ = options;
    credit_ = options.credit;
    delivery_limit_.reset();
    delivered_ = 0;
    sink_ = std::make_shared<LeaseSink>(std::move(sink));
    woken_.notify_all();
    return std::unique_ptr<Subscription>(std::make_unique<FakeSubscription>(*this));
  }

  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override {
    post([this, leases = std::move(leases), done = std::move(done)] {
      std::vector<Extended> answers;
      std::optional<Error> failed;
      for (const LeaseRef& ref : leases) {
        Result<Extended> answer = on_extend(ref);
        if (answer) {
          answers.push_back(*answer);
        } else {
          failed = answer.error();
        }
      }
      if (failed) {
        done(*failed);
      } else {
        done(std::move(answers));
      }
      std::lock_guard lock(mutex_);
      for (const LeaseRef& ref : leases) ++extensions_[ref.token];
      changed_.notify_all();
    });
  }

  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override {
    post([this, settlements = std::move(settlements), done = std::move(done)] {
      std::vector<Status> answers;
      for (const Settlement& settlement : settlements) {
        answers.push_back(on_settle(settlement));
        std::lock_guard lock(mutex_);
        if (answers.back()) settled_.push_back(settlement);
        if (answers.back() || answers.back().error().code == ErrorCode::kLeaseLost) --unsettled_;
      }
      done(std::move(answers));
      std::lock_guard lock(mutex_);
      told_ = settled_.size();
      changed_.notify_all();
    });
  }

  void mark_delivered(std::vector<LeaseRef> leases) override {
    std::lock_guard lock(mutex_);
    marked_.insert(marked_.end(), leases.begin(), leases.end());
  }

  Pressure pressure() const override { return {}; }
  Capabilities capabilities() const override { return {.kinds = true}; }

 private:
  class FakeSubscription : public Subscription {
   public:
    explicit FakeSubscription(FakeBroker& broker) : broker_(broker) {}
    ~FakeSubscription() override {
      std::unique_lock lock(broker_.mutex_);
      broker_.sink_ = nullptr;
      broker_.changed_.wait(lock, [this] { return !broker_.sinking_; });
    }
    void set_credit(int credit) override {
      std::lock_guard lock(broker_.mutex_);
      broker_.credit_ = credit;
      broker_.woken_.notify_all();
    }
    void set_delivery_limit(std::uint64_t deliveries) override {
      std::lock_guard lock(broker_.mutex_);
      broker_.delivery_limit_ = deliveries;
      broker_.woken_.notify_all();
    }

   private:
    FakeBroker& broker_;
  };

  void post(std::function<void()> task) {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    woken_.notify_all();
  }

  bool can_give() const {
    if (!sink_ || ready_.empty()) return false;
    return delivery_limit_ ? delivered_ < *delivery_limit_ : unsettled_ < credit_;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      woken_.wait(lock, [this] { return ended_ || !tasks_.empty() || can_give(); });
      if (!tasks_.empty()) {
        std::function<void()> task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        task();
        task = nullptr;  // What it holds may want the lock to go away.
        lock.lock();
      } else if (can_give()) {
        std::vector<Lease> leases;
        while (can_give()) {
          leases.push_back(std::move(ready_.front()));
          ready_.pop_front();
          ++unsettled_;
          ++delivered_;
        }
        most_unsettled_ = std::max(most_unsettled_, static_cast<std::size_t>(unsettled_));
        const std::shared_ptr<LeaseSink> sink = sink_;
        sinking_ = true;
        lock.unlock();
        (*sink)(std::move(leases));
        lock.lock();
        sinking_ = false;
        changed_.notify_all();
      } else if (ended_) {
        return;
      }
    }
  }

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable woken_;
  std::condition_variable changed_;
  std::deque<Lease> ready_;
  std::deque<std::function<void()>> tasks_;
  std::vector<Settlement> settled_;
  std::size_t told_ = 0;
  std::map<std::uint64_t, int> extensions_;
  std::shared_ptr<LeaseSink> sink_;
  SubscribeOptions subscribed_;
  int credit_ = 0;
  int unsettled_ = 0;
  std::optional<std::uint64_t> delivery_limit_;
  std::uint64_t delivered_ = 0;
  std::vector<LeaseRef> marked_;
  std::size_t most_unsettled_ = 0;
  bool sinking_ = false;
  bool ended_ = false;

  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace bide::support
