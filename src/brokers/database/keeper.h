// Keeper: keeps order at the server, on a lane where nothing else can hold it up: says that this client lives, ends the leases
// that ran out, of whomever, and forgets what is old. Every process does so, whatever else it does there. Other lanes wait
// for this one and never do its work: with a connection that hangs they would hold up the sign of life.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "brokers/database/endings.h"
#include "brokers/database/granter.h"
#include "brokers/database/job_store.h"
#include "brokers/database/lane.h"

namespace bide::brokers::database {

struct KeepingOptions {
  Milliseconds client_timeout{5'000};  // A process not heard of for so long has died.
  Retention retention = {};
};

// Safe to share between threads.
class Keeper {
 public:
  Keeper(JobStore& store, ClientId client, IdSource& ids, Granter& granter, KeepingOptions options);

  void start() { lane_.wake(); }
  // The subscriptions have changed: from now on the client is known at the server.
  void subscriptions_changed();
  // For other lanes. Each returns when it is so, when the server does not take it now, or after a while.
  void await_subscriptions_told();
  void await_first_look();  // For what dead processes left behind.
  // Leases that do not outlive the process are given back.
  void stop(Milliseconds at_most);

 private:
  std::optional<Moment> step(Lane& lane);
  void tell_subscriptions(Lane& lane);
  void await(const std::function<bool()>& holds);
  // Whether there are more.
  Result<bool> end_overdue(Lane& lane);
  void forget_lost(Lane& lane, Moment now);

  const ClientId client_;
  const KeepingOptions options_;
  IdSource& ids_;
  Granter& granter_;

  // Of the lane.
  Moment next_alive_ = {};
  Moment next_overdue_ = {};
  Moment next_forget_ = {};
  std::optional<Moment> next_lease_end_;

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::uint64_t changes_ = 0;   // Of the subscriptions; without any the server need not know the client.
  std::uint64_t told_ = 0;      // The last of them that it knows.
  bool has_looked_ = false;
  std::uint64_t failures_ = 0;  // Of telling and looking.
  bool stopped_ = false;

  Lane lane_;
};

}  // namespace bide::brokers::database
