// ModelBroker: the seam in as few lines as it can be said, in memory, under one lock, on a virtual clock. It proves the
// suite: as it is, it passes; with any one of its faults switched on, some test must fail. Nothing else should use it.
//
// Completions and sinks run on the calling thread, after the lock is released.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "support/virtual_clock.h"

namespace bide::conformance {

// Mistakes that brokers have really made.
enum class ModelFault {
  kNone,
  kEarlyByOneMillisecond,
  kDelayOnWallClock,
  kDueOnElapsedTime,
  kLeaseOnWallClock,
  kTokenNotCompared,
  kTokenNotGrowing,
  kAttemptCountedAtSettle,
  kExtendPastTimeLimit,
  kCreditIgnored,
  kCreditLeaksWithLeases,
  kEffectsBeforeValidation,
  kEffectsOfStaleSettle,
  kEffectsOfRepeatedSettle,
  kOutcomeNotCompared,
  kPriorityIgnored,
  kArrivalOrderLost,
  kUniqueKeyLeaks,
  kUniqueKeyUnchecked,
  kReplayWithOldBudget,
  kReturnCharged,
  kCrashesNotCounted,
  kPauseForgottenByRestart,
  kCursorByOffset,
  kCancelRestartsRunning,
  kRescheduleIgnoresState,
  kWatchForgetsRemoved,
  kPurgeTakesDead,
  kBatchFailsWhole,
  kWeightsIgnored,
  kHeadersSorted,
  kLastChancesTogether,
  kLeaseTimeForgottenByRestart,
  kDeliveryLimitFreedBySettling,
  kCarriedHistoryLost,
  kCarriedDeadRevived,
  kLast,
};
std::string_view to_string(ModelFault fault);

class ModelBroker : public Broker, public Inspector {
 public:
  static constexpr Milliseconds kRetention{60 * 60 * 1000};

  explicit ModelBroker(support::VirtualClock& clock, ModelFault fault = ModelFault::kNone)
      : clock_(clock), fault_(fault) {}

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  Pressure pressure() const override { return {}; }
  Capabilities capabilities() const override;

  void queues(Completion<std::vector<QueueInfo>> done) override;
  void find(JobId id, Completion<JobInfo> done) override;
  void list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) override;
  void explain(JobId id, Completion<Explanation> done) override;
  void audit(Completion<AuditReport> done) override;
  GiveUp watch(JobId id, Completion<JobInfo> done) override;
  void cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) override;
  void reschedule(JobId id, Time due, Completion<void> done) override;
  void replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) override;
  void pause(std::string queue, bool paused, Completion<void> done) override;
  void purge(std::string queue, Completion<std::uint64_t> done) override;

  void restart();  // The process ended and a new one began.
  void wake();     // The clock was moved.

 private:
  struct Entry {
    JobInfo info;  // info.due is filled in when it is asked for.
    std::uint64_t sequence = 0;
    std::int64_t due_ms = 0;  // Wall or elapsed.
    bool due_is_wall = false;
    std::uint64_t token = 0;
    std::uint64_t subscription = 0;
    std::int64_t deadline_ms = 0;
    std::int64_t limit_ms = 0;
    Milliseconds lease{0};
    bool outlives_process = false;
    bool cancel_requested = false;
    std::optional<std::size_t> settled_as;  // The outcome, if the last lease ended by a settle.
  };
  struct Subscriber {
    SubscribeOptions options;
    LeaseSink sink;
    int unsettled = 0;
    std::vector<int> scores;
    std::optional<std::uint64_t> delivery_limit = {};
    std::uint64_t delivered = 0;

    bool has_room() const { return delivery_limit ? delivered < *delivery_limit : unsettled < options.credit; }
  };
  class Handle;

  bool has(ModelFault fault) const { return fault_ == fault; }
  std::int64_t elapsed_ms() const { return clock_.now().elapsed_us / 1000; }
  std::int64_t wall_ms() const { return clock_.now().wall_us / 1000; }
  Time wall() const { return Time(Milliseconds(wall_ms())); }
  Time due_of(const Entry& entry) const;
  bool comes_before(const Entry& a, const Entry& b) const;
  JobInfo shown(const Entry& entry) const;
  bool key_is_held(const std::string& key, JobId by) const;

  Result<Enqueued> accept(Job job);
  void set_delay(Entry& entry, Milliseconds delay);
  Status settle_one(Settlement& settlement);
  void end_lease(Entry& entry);
  void charge(Entry& entry, Fault fault, std::string text);
  void after_fault(Entry& entry, Fault fault, std::string text);
  void finish(Entry& entry, JobState state);
  void remove(JobId id);
  void tick();
  void grant();
  bool must_wait(const Entry& entry, const Subscriber& subscriber) const;
  Entry* choose(Subscriber& subscriber);
  // Runs `change` under the lock, then whatever it set off outside of it.
  template <class Change>
  auto locked(Change change) {
    std::unique_lock lock(mutex_);
    tick();
    auto result = change();
    tick();
    grant();
    const auto outside = std::exchange(outside_, {});
    lock.unlock();
    for (const auto& action : outside) action();
    return result;
  }

  support::VirtualClock& clock_;
  const ModelFault fault_;

  std::mutex mutex_;  // Guards everything below.
  std::map<JobId, Entry> jobs_;
  std::map<std::uint64_t, Subscriber> subscribers_;
  std::set<std::string> paused_;
  std::set<std::string> leaked_keys_;
  struct Watch {
    std::uint64_t number = 0;
    Completion<JobInfo> done;
  };
  std::uint64_t last_watch_ = 0;
  std::multimap<JobId, Watch> watches_;
  std::vector<std::function<void()>> outside_;
  std::uint64_t last_number_ = 0;
  AuditReport totals_;
};

}  // namespace bide::conformance
