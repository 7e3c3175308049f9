#include "move/move.h"

#include <algorithm>
#include <utility>

#include "core/quote.h"
#include "move/held_queues.h"
#include "move/transfer.h"

namespace bide::move {

Result<std::vector<QueueInfo>> queues_to_move(const Endpoint& from, const std::vector<std::string>& wanted) {
  auto queues = wait<std::vector<QueueInfo>>([&](auto done) { from.inspector.queues(std::move(done)); });
  if (!queues) return queues;
  std::erase_if(*queues, [&](const QueueInfo& queue) {
    if (queue.name == kHoldQueue) return true;
    return !wanted.empty() && std::find(wanted.begin(), wanted.end(), queue.name) == wanted.end();
  });
  return queues;
}

Status check_waiting(const Endpoint& from) {
  const auto queues = queues_to_move(from, {});
  if (!queues) return queues.error();
  std::uint64_t waiting = 0;
  for (const QueueInfo& queue : *queues) waiting += queue.waiting;
  if (waiting == 0) return {};
  return Error{ErrorCode::kUnsupported,
               std::to_string(waiting) + " job(s) at the source wait for others, and would be cancelled or run too soon when those are "
                                         "taken away: let their flows end, or cancel them, and move then"};
}

Result<MoveReport> move_jobs(const Endpoint& from, const Endpoint& to, const MoveOptions& options) {
  Transfer transfer(to, options);
  if (!transfer.target().carries_past) {
    return Error{ErrorCode::kUnsupported, "the target cannot keep attempts and errors of jobs that come from elsewhere: " +
                                              transfer.target().why_not};
  }
  if (Status alone = check_waiting(from); !alone) return alone.error();
  const auto queues = queues_to_move(from, options.queues);
  if (!queues) return queues.error();
  for (const QueueInfo& queue : *queues) transfer.report().found += queue.scheduled + queue.ready + queue.dead;
  if (!transfer.target().idempotent_ids) {
    transfer.report().notes.emplace_back(
        "the target does not know ids: jobs that were on their way when a move was interrupted may be there twice");
  }
  const Capabilities source = from.broker.capabilities();
  const bool can_list = source.inspect && source.pause && source.cancel;
  const Status moved = can_list ? move_by_listing(from, transfer) : move_by_leasing(from, transfer);
  if (!moved) return moved.error();
  return std::move(transfer.report());
}

}  // namespace bide::move
