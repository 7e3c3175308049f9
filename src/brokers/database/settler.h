// Settler: everything that is done to leases. Calls that arrive while a step is under way are joined into the next one, so
// that all of them share its commit.

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
#include "brokers/database/keeper.h"
#include "brokers/database/lane.h"

namespace bide::brokers::database {

// Safe to share between threads.
class Settler {
 public:
  Settler(JobStore& store, IdSource& ids, Granter& granter, Keeper& keeper);

  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done);
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done);
  void mark_delivered(std::vector<LeaseRef> leases);
  void save_body(const LeaseRef& lease, std::string body, Completion<void> done);

  // After everything that was asked.
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
  // False: closed; the call is answered here.
  template <class Calls, class Call>
  bool add(Calls& calls, Call call);

  IdSource& ids_;
  Granter& granter_;
  Keeper& keeper_;

  std::mutex mutex_;  // Guards everything below.
  std::deque<SettleCall> settles_;
  std::vector<ExtendCall> extends_;
  std::vector<LeaseRef> delivered_;
  std::deque<SaveCall> saves_;
  bool closed_ = false;

  Lane lane_;
};

}  // namespace bide::brokers::database
