// Forwarder: takes the jobs of an outbox in their order, hands them to the target in batches, and forgets each when the
// target has confirmed it. One batch is on its way at a time, so that what is confirmed is in order; when one fails, it is
// tried again before anything behind it. A job that the target refuses for good is dead in the outbox.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "platform/lease_arrivals.h"

namespace bide::outbox {

struct Target {
  std::shared_ptr<Broker> broker;
  std::shared_ptr<Inspector> inspector;
};
using OpenTarget = std::function<Result<Target>()>;

class Forwarder {
 public:
  struct Stats {
    bool reached = false;      // The target has been opened.
    std::string problem = {};  // Why nothing is handed on at the moment; empty: it is.
    std::uint64_t forwarded = 0;
    std::uint64_t existed = 0;     // Of these: the target had them already.
    std::uint64_t refused = 0;     // For good.
    std::uint64_t duplicates = 0;  // Dropped, because a live job holds their unique key.
    std::uint64_t retried = 0;     // Batches that were not confirmed.
    double jobs_a_second = 0;      // Handed on, of late.
  };

  // `open` may be running still when this is gone: it must not refer to anything that ends.
  // `may_forward`: whether this process is the one to do it; asked again and again.
  Forwarder(Broker& local, std::function<bool()> may_forward, OpenTarget open);
  ~Forwarder() { stop(); }
  // Hands on what is there, while that works, for kLinger at most. The target stays.
  void stop();

  // Null: not reached so far. Once reached it stays.
  std::shared_ptr<const Target> target() const;
  Stats stats() const;
  // The first answer to an attempt to open the target; nothing: there was none in time.
  std::optional<Status> wait_for_first_answer(std::chrono::milliseconds patience);

  static constexpr std::chrono::milliseconds kLinger{2000};

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  bool open_target();
  Result<Target> try_to_open();
  // False: the target does not take them now.
  bool forward(std::vector<Lease> leases);
  std::optional<std::vector<Result<Enqueued>>> send(std::vector<Job> jobs, const std::vector<LeaseRef>& held);
  void settle(std::vector<Settlement> settlements);
  void give_back(std::vector<Lease> leases);
  void set_problem(std::string problem);
  void count_rate(std::size_t jobs);
  bool stopping() const;
  // True: it is over.
  bool pause(std::chrono::milliseconds span);

  Broker& local_;
  const std::function<bool()> may_forward_;
  const OpenTarget open_;
  const std::shared_ptr<platform::LeaseArrivals> arrivals_ = std::make_shared<platform::LeaseArrivals>();
  std::unique_ptr<Subscription> subscription_;  // Of the thread.

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::shared_ptr<const Target> target_;
  std::optional<Status> first_answer_;
  std::optional<Clock::time_point> stop_by_;
  Stats stats_;
  Clock::time_point rate_since_ = Clock::now();
  std::uint64_t rate_jobs_ = 0;

  std::thread thread_;  // The last: it uses all of the above.
};

}  // namespace bide::outbox
