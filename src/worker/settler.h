// Settler: brings outcomes to the broker, in batches, without anybody waiting for it.
//
// An outcome is sent at once while fewer than two batches are on their way; otherwise it joins the next batch, which
// leaves when one comes back. So a batch is as large as what was finished during one commit of the broker.
//
// A broker without atomic_effects publishes what takes a job's place before it acknowledges the job, and its server may
// refuse to take messages for minutes. There an outcome that publishes goes alone and at once, so that no other outcome
// waits for its answer.
//
//   confirmed                      counted, forgotten
//   kLeaseLost, kNotFound          counted, forgotten: the attempt was not ours any more
//   kInvalidArgument               settled again as a failed attempt, with the broker's words
//   anything else                  sent again after a wait, while the lease lives

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bide/broker.h"
#include "bide/worker.h"
#include "worker/attempt.h"
#include "worker/attempt_runner.h"
#include "worker/held_leases.h"

namespace bide::worker {

class Settler {
 public:
  Settler(Broker& broker, AttemptRunner& runner, HeldLeases& held);

  // Whoever owns the settler and what it refers to; kept alive by every call that is under way.
  void set_owner(std::weak_ptr<void> owner) { owner_ = std::move(owner); }

  // Any thread. The attempt must be settling.
  void settle(Attempt& attempt, Settlement settlement);
  // The lease is gone and nobody is to be told.
  void drop(Attempt& attempt);

  // Waits while results and effects that are not confirmed take more memory than they may.
  void wait_for_room();

  // Sends again what the broker did not confirm, if its time has come; gives up what has lost its lease.
  // The moment of the next call, if any is needed.
  Moment send_late(Moment now);

  // Waits until everything is confirmed or given up. False: it was not in time.
  bool wait_until_empty(Moment until);
  // The broker is not called any more afterwards, whatever is left.
  void close();

  void add_to(WorkerStats& stats) const;

 private:
  // Kept until it is confirmed: what the broker was given is gone when it says that it is unavailable.
  struct Unconfirmed {
    Unconfirmed(Attempt& of, const Settlement& settlement_in);

    Attempt* attempt;
    Settlement settlement;
    std::size_t bytes;  // Of its result, effects and saved body.
  };
  // Side by side, so that the settlements can be handed to the broker as they are.
  struct Batch {
    std::vector<Unconfirmed> kept;
    std::vector<Settlement> given;
  };
  struct Late {
    Unconfirmed what;
    Moment when;
  };

  void send_while_possible(std::unique_lock<std::mutex>& lock);
  void send(Batch batch, bool alone, std::unique_lock<std::mutex>& lock);
  void add(Unconfirmed kept, Settlement given);
  void take_answer(std::shared_ptr<std::vector<Unconfirmed>> sent, bool alone,
                   const Result<std::vector<Status>>& answer);
  void take_status(const Unconfirmed& sent, const Status& status);
  void forget(const Unconfirmed& sent);
  bool empty() const { return unconfirmed_ == 0; }

  Broker* const broker_;
  const bool publishing_goes_alone_;
  AttemptRunner& runner_;
  HeldLeases& held_;
  std::weak_ptr<void> owner_;
  std::atomic<std::size_t> bytes_ = 0;  // Of results, effects and saved bodies.

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  Batch outbox_;
  Batch alone_;  // To be sent one by one.
  // Confirmed, and freed by a handler's thread, which has more time for it than the broker's.
  std::vector<std::shared_ptr<std::vector<Unconfirmed>>> spent_;
  std::vector<Late> late_;
  std::size_t unconfirmed_ = 0;
  int in_flight_ = 0;  // Batches; not what was sent alone.
  int calling_ = 0;
  bool closed_ = false;
  bool reported_ = false;
  std::string complaint_;
  WorkerStats stats_;
};

}  // namespace bide::worker
