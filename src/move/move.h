// move_jobs: brings every waiting, scheduled and dead job of one broker to another, with id, due time, attempts, errors and
// for the dead their reason and time. It may be killed at any moment and run again: nothing is lost, and nothing is there
// twice where the target knows ids.
//
// A job is copied first and removed from the source when the target has confirmed it. So that nobody runs it in between:
//
//   - Where the source can list, pause and cancel, its queues are paused, which outlives a mover that is killed; what runs is
//     waited for. See held_queues.h and docs/decisions/0014-moving-jobs.md.
//   - Elsewhere (RabbitMQ) the mover leases what is ready, as a worker does, and acknowledges what the target has. What waits
//     for its time cannot be seen there, and comes when it is due.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "bide/result.h"

namespace bide::move {

struct Endpoint {
  Broker& broker;
  Inspector& inspector;
};

struct MoveReport {
  std::uint64_t found = 0;    // When the move began; 0: nobody knows.
  std::uint64_t waiting = 0;  // Moved: scheduled and ready ones.
  std::uint64_t dead = 0;     // Moved.
  std::uint64_t existed = 0;  // Of these: were at the target already, from a move that was interrupted.
  std::uint64_t running = 0;  // Stay at the source, because an attempt runs.
  std::uint64_t refused = 0;  // By the target: stay at the source.
  std::map<std::string, std::uint64_t> reasons = {};           // Of these, with how many each.
  std::vector<std::pair<JobId, std::string>> examples = {};    // Some of them.
  std::vector<JobId> at_both = {};  // Somebody started it at the source while it was copied, and at the target as well.
  std::vector<std::string> notes = {};  // For people.

  std::uint64_t moved() const { return waiting + dead; }
};

struct MoveOptions {
  std::vector<std::string> queues = {};  // Empty: all of them.
  double jobs_a_second = 0;              // 0: as fast as it goes.
  bool wait_for_running = true;          // Otherwise jobs that run stay where they are.
  bool follow = false;  // Where the source is emptied by leasing: goes on until told to stop.
  Milliseconds patience{60'000};  // A broker that does not answer is asked again for so long.
  std::function<void(const MoveReport&)> on_progress = {};
  std::function<bool()> stop = {};  // Asked between batches.
};

// kUnsupported: the target does not keep the past of jobs, or the source cannot be emptied. kUnavailable, kUnconfirmed and
// others: one of the brokers failed, and the move can be run again.
Result<MoveReport> move_jobs(const Endpoint& from, const Endpoint& to, const MoveOptions& options);

// What there is to move, by queue.
Result<std::vector<QueueInfo>> queues_to_move(const Endpoint& from, const std::vector<std::string>& wanted);

}  // namespace bide::move
