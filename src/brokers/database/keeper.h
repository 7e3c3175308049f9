// Keeper: keeps order at the server, on a lane where nothing else can hold it up: says that this client lives, ends the leases
// that ran out, of whomever, and forgets what is old. Every process does so, whatever else it does there.

#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

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
  // For a call that wants them to be written, on its own session: returns when they are.
  void tell_subscriptions(Lane& lane);
  // For the first call of a process that concerns leases, on its own session: what dead processes left behind comes first.
  void look_once(Lane& lane);
  // Leases that do not outlive the process are given back.
  void stop(Milliseconds at_most) { lane_.stop(at_most); }

 private:
  std::optional<Moment> step(Lane& lane);
  // False: there are more.
  bool end_overdue(Lane& lane);
  void forget_lost(Lane& lane, Moment now);

  const ClientId client_;
  const KeepingOptions options_;
  IdSource& ids_;
  Granter& granter_;

  // Of the lane.
  Moment next_overdue_ = {};
  Moment next_forget_ = {};
  std::optional<Moment> next_lease_end_;

  std::mutex telling_;  // Held while the subscriptions are written.
  std::mutex looking_;  // Held while overdue leases are ended. Guards the next.
  bool has_looked_ = false;

  std::mutex mutex_;  // Guards everything below.
  bool is_known_ = false;   // The client has, or had, subscriptions.
  bool must_tell_ = false;  // Of them.
  Moment next_alive_ = {};

  Lane lane_;
};

}  // namespace bide::brokers::database
