// HeldQueues: the queues of the source are paused while their jobs are moved. Which of them the mover has paused, and not
// somebody before it, is written into the source itself, as a job for each in the queue bide.move that never becomes due: so
// a mover that takes over from one that was killed knows which ones to open again.

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "bide/result.h"
#include "move/transfer.h"

namespace bide::move {

inline constexpr const char* kHoldQueue = "bide.move";

class HeldQueues {
 public:
  HeldQueues(const Endpoint& from, Transfer& transfer) : from_(from), transfer_(transfer) {}

  // Whether source and target are the same place under two names: then removing a job there would lose it.
  Result<bool> is_same_place();
  // Pauses those of the given that are not held yet. One that somebody else has paused is paused at the target as well.
  Status hold(const std::vector<QueueInfo>& queues);
  // Opens those that a mover has paused, and forgets about them.
  Status release();

 private:
  Status read_marks();
  Status forget(const JobId& id);
  Status pause(const Endpoint& where, const std::string& queue, bool paused);

  const Endpoint from_;
  Transfer& transfer_;
  bool read_ = false;
  std::map<std::string, JobId> marks_;  // By queue.
  std::set<std::string> held_;
};

}  // namespace bide::move
