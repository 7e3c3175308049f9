// Settler: everything that is done to leases. Calls that arrive while a step is under way are joined into the next one, so
// that all of them share its commit. The same lane keeps order: it says that this client lives, ends the leases that ran
// out, of whomever, and forgets what is old.

#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
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
class Settler {
 public:
  Settler(JobStore& store, ClientId client, IdSource& ids, Granter& granter, KeepingOptions options);

  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done);
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done);
  void mark_delivered(std::vector<LeaseRef> leases);
  void save_body(const LeaseRef& lease, std::string body, Completion<void> done);

  // The subscriptions have changed: from now on the client is known at the server.
  void subscriptions_changed();
  // For a call that wants them to be known: on its own session.
  void tell_subscriptions(Lane& lane);
  // After everything that was asked; leases that do not outlive the process are given back.
  void stop(Milliseconds at_most);

 private:
  struct SettleCall {
    std::vector<Settlement> settlements = {};
    std::vector<Status> statuses = {};  // Errors: refused here, not sent.
    std::size_t bytes = 0;
    Completion<std::vector<Status>> done = {};
  };
  struct ExtendCall {
    std::vector<LeaseRef> leases;
    Completion<std::vector<Extended>> done;
  };
  struct SaveCall {
    LeaseRef lease;
    std::string body;
    Completion<void> done;
  };

  std::optional<Moment> step(Lane& lane);
  void run_extends(Lane& lane);
  bool run_settles(Lane& lane);
  Result<std::vector<Status>> end_all(Lane& lane, std::vector<SettleCall>& calls);
  void run_saves(Lane& lane);
  Moment keep_order(Lane& lane);
  bool end_overdue(Lane& lane);

  const ClientId client_;
  const KeepingOptions options_;
  IdSource& ids_;
  Granter& granter_;

  // Of the lane.
  Moment next_overdue_ = {};
  Moment next_forget_ = {};
  std::optional<Moment> next_lease_end_;

  std::mutex mutex_;  // Guards everything below.
  std::deque<SettleCall> settles_;
  std::vector<ExtendCall> extends_;
  std::vector<LeaseRef> delivered_;
  std::deque<SaveCall> saves_;
  bool is_known_ = false;        // The client has, or had, subscriptions.
  bool must_tell_ = false;       // Of them.
  Moment next_alive_ = {};

  Lane lane_;
};

}  // namespace bide::brokers::database
