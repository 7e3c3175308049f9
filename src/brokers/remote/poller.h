// Poller: one subscription at a server: a loop of long polls, each for as many leases as there is credit. It counts the
// leases that are out, and notices when one has run out though nobody settled it.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bide/broker.h"
#include "brokers/remote/api_caller.h"
#include "platform/clock.h"
#include "platform/keyed_hash.h"

namespace bide::brokers::remote {

class Poller : public std::enable_shared_from_this<Poller> {
 public:
  struct Owner {
    std::shared_ptr<ApiCaller> caller = nullptr;
    const platform::Clock* clock = nullptr;
    // Leases that have arrived: from now on released() and extended() are to be told.
    std::function<void(const std::shared_ptr<Poller>&, const std::vector<Lease>&)> arrived;
    // Leases that ran out though nobody settled them.
    std::function<void(const LeaseRef&)> expired;
    // Leases that nobody wants any more are given back; then `done`.
    std::function<void(std::vector<LeaseRef>, std::function<void()> done)> give_back;
    Milliseconds farewell{1'000};  // So long the end of a subscription waits for the server to know it.
  };

  Poller(std::string name, SubscribeOptions options, LeaseSink sink, Owner owner);

  void start() { pump(); }
  void set_credit(int credit);
  void set_delivery_limit(std::uint64_t deliveries);
  // No lease arrives afterwards. Waits for the server to know it, for a moment, and for leases that come all the same
  // to be given back, unless on a thread of the caller.
  void end();
  // The same without a word to anybody.
  void abandon();

  // The lease has ended, by a settlement or because it was lost.
  void released(const LeaseRef& lease);
  // It was kept alive by a request that was sent at that time.
  void extended(const LeaseRef& lease, std::int64_t at_ms);
  // Leases that ran out give their credit back.
  void look_again();

  // Of leases that are neither settled nor lost.
  std::vector<LeaseRef> held() const;
  // It has ended and nothing of it is out.
  bool is_over();
  bool outlives_process() const { return options_.outlives_process; }

 private:
  struct Held {
    std::uint64_t token = 0;
    std::int64_t until_ms = 0;  // By elapsed time.
    std::int64_t limit_ms = 0;
  };

  std::int64_t now_ms() const { return owner_.clock->now().elapsed_us / 1000; }
  void pump();
  void poll(int max);
  void take(std::int64_t sent_ms, Result<std::string> answer);
  void take_failure(const Error& error);
  void deliver(std::vector<Lease> leases);
  void leave(std::unique_lock<std::mutex>& lock);
  void set_alarm(std::unique_lock<std::mutex>& lock);
  void expire();      // With the lock held.
  int room() const;   // Likewise: how many more leases are wanted.

  const std::string name_;
  const SubscribeOptions options_;
  const LeaseSink sink_;
  const Owner owner_;

  // Held while the sink or on_failed runs, so that the end of the subscription can wait for it. The sink itself may end
  // it.
  std::recursive_mutex delivering_;

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  int credit_ = 0;
  std::optional<std::uint64_t> delivery_limit_;  // Takes the place of the credit.
  std::uint64_t delivered_ = 0;
  int claimed_ = 0;  // By the poll that waits at the server; 0: there is none.
  int leaving_ = 0;
  int giving_back_ = 0;
  bool ended_ = false;
  bool waiting_ = false;  // For the next try after a failure.
  bool alarm_set_ = false;
  int failures_ = 0;
  int most_leases_;  // Of one answer, by the size of those before.
  platform::KeyedMap<JobId, Held> held_;
};

}  // namespace bide::brokers::remote
