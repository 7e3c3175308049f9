// Emptying a source that cannot list what waits: what is ready is leased, as a worker does it.

#include <memory>
#include <utility>

#include "move/transfer.h"
#include "platform/lease_arrivals.h"

namespace bide::move {

namespace {

// Long enough for a batch, however slow the target; RabbitMQ takes deliveries back after half an hour.
constexpr Milliseconds kLease{15 * 60 * 1000};
// So long without a job, and none that is ready: the source is empty.
constexpr std::chrono::milliseconds kQuiet{1500};

Status settle(const Endpoint& from, std::vector<Settlement> settlements, Transfer& transfer) {
  if (settlements.empty()) return {};
  auto statuses = transfer.ask<std::vector<Status>>(
      [&](auto done) { from.broker.settle(settlements, std::move(done)); });
  // A lease that is lost comes again, and is known to the target then, if it knows ids.
  return statuses ? Status() : statuses.error();
}

}  // namespace

Status move_by_leasing(const Endpoint& from, Transfer& transfer) {
  const MoveOptions& options = transfer.options();
  MoveReport& report = transfer.report();
  if (from.broker.capabilities().dead_set) {
    if (Status dead = move_dead(from, options.queues, transfer); !dead) return dead;
  }
  const auto queues = queues_to_move(from, options.queues);
  if (!queues) return queues.error();
  SubscribeOptions subscribe{.queues = {}, .credit = static_cast<int>(transfer.batch()), .lease = kLease,
                             .worker = "bide move"};
  // One that was named may be known to nobody but those who use it.
  for (const std::string& name : options.queues) subscribe.queues.push_back({name, 1});
  for (const QueueInfo& queue : *queues) {
    if (options.queues.empty()) subscribe.queues.push_back({queue.name, 1});
  }
  if (subscribe.queues.empty()) return {};
  // Shared with a sink that may be called until the subscription is gone.
  const auto arrivals = std::make_shared<platform::LeaseArrivals>();
  auto subscription =
      from.broker.subscribe(subscribe, [arrivals](std::vector<Lease> leases) { arrivals->add(std::move(leases)); });
  if (!subscription) return subscription.error();
  std::vector<Settlement> refused;  // Held until the end: given back at once they would come at once.
  Status outcome;
  while (outcome && !transfer.should_stop()) {
    const std::vector<Lease> leases = arrivals->take(transfer.batch(), kQuiet);
    if (leases.empty()) {
      if (options.follow) continue;
      const auto left = queues_to_move(from, options.queues);
      if (!left) {
        outcome = left.error();
        break;
      }
      std::uint64_t ready = 0;
      for (const QueueInfo& queue : *left) ready += queue.paused ? 0 : queue.ready;
      // Workers of the source may hold some, which are counted as ready there or not.
      if (ready == 0) break;
      continue;
    }
    std::vector<Job> jobs;
    for (const Lease& lease : leases) jobs.push_back(carried(lease));
    const auto fates = transfer.hand_over(std::move(jobs));
    std::vector<Settlement> settlements;
    for (std::size_t i = 0; i < leases.size(); ++i) {
      const LeaseRef lease{leases[i].job.id, leases[i].token};
      if (!fates || (*fates)[i] == Transfer::Fate::kRefused) {
        refused.push_back({.lease = lease, .outcome = Returned{}});
        continue;
      }
      settlements.push_back({.lease = lease, .outcome = Done{}});
      ++report.waiting;
      if ((*fates)[i] == Transfer::Fate::kExisted) ++report.existed;
    }
    outcome = fates ? settle(from, std::move(settlements), transfer) : Status(fates.error());
    transfer.progress();
    if (refused.size() >= transfer.batch()) {
      report.notes.emplace_back("the target refused too many jobs to go on");
      break;
    }
  }
  subscription->reset();
  for (const Lease& lease : arrivals->take_all()) {
    refused.push_back({.lease = {lease.job.id, lease.token}, .outcome = Returned{}});
  }
  if (Status back = settle(from, std::move(refused), transfer); !back && outcome) outcome = back;
  report.notes.emplace_back(
      "what waits for its time at the source cannot be seen there and was not moved; it comes when it is due: run it again, "
      "or with --follow");
  return outcome;
}

}  // namespace bide::move
