// next_turn: whose turn it is among the queues of a subscription that can give something, in proportion to their weights
// (smooth weighted round-robin: the turns of a heavy queue are spread out, not bunched).

#pragma once

#include <vector>

#include "brokers/database/job_store.h"

namespace bide::brokers::database {

// Null when can_give(index) is true of none.
template <class CanGive>
QueueTurn* next_turn(std::vector<QueueTurn>& turns, CanGive can_give) {
  QueueTurn* best = nullptr;
  int total = 0;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (!can_give(i)) continue;
    turns[i].score += turns[i].weight;
    total += turns[i].weight;
    if (best == nullptr || turns[i].score > best->score) best = &turns[i];
  }
  if (best != nullptr) best->score -= total;
  return best;
}

}  // namespace bide::brokers::database
