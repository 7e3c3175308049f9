// State::audit: the proof that every accepted job is in exactly one place.

#include <map>
#include <string>

#include "engine/state.h"

namespace bide::engine {

namespace {

std::string differs(const std::string& what, std::uint64_t counted, std::uint64_t found) {
  return what + ": counted " + std::to_string(counted) + ", found " + std::to_string(found);
}

}  // namespace

std::vector<std::string> State::audit() const {
  constexpr std::size_t kMostProblems = 20;
  std::vector<std::string> problems;
  const auto problem = [&](std::string text) {
    if (problems.size() < kMostProblems) problems.push_back(std::move(text));
  };

  // In how many lists each slot is seen, and whether it belongs there.
  std::vector<std::uint8_t> seen(slab_.size(), 0);
  const auto see = [&](Slot slot, EntryState expected, const char* where) {
    if (seen[slot] < 255) ++seen[slot];
    const EntryState state = slab_[slot].entry_state();
    if (state != expected && state != EntryState::kZombie) {
      problem("job " + slab_[slot].id.to_string() + " is in the " + where + " but not in that state");
    }
  };
  const auto see_list = [&](const SlotList& list, EntryState expected, const char* where) {
    std::uint64_t steps = 0;
    for (Slot slot = list.head; slot != kNoSlot; slot = slab_[slot].next) {
      see(slot, expected, where);
      if (++steps > slab_.size()) {
        problem(std::string("a list of the ") + where + " never ends");
        return;
      }
    }
  };
  const_cast<TimerWheel&>(wheel_).for_each_list(
      [&](const SlotList& list) { see_list(list, EntryState::kScheduled, "timer"); });
  for (const Slot slot : held_) see(slot, EntryState::kScheduled, "timer");
  for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
    for (const Lane& lane : queues_[static_cast<std::uint16_t>(queue)].lanes) {
      see_list(lane.list, EntryState::kReady, "ready lanes");
    }
  }
  see_list(done_, EntryState::kDone, "done list");
  see_list(dead_, EntryState::kDead, "dead list");
  for (const auto& [slot, why] : quarantined_) see(slot, EntryState::kQuarantined, "quarantine");
  for (const Running& running : leases_.places()) {
    if (running.slot != kNoSlot) see(running.slot, EntryState::kRunning, "lease table");
  }

  std::uint64_t live = 0;
  std::uint64_t known = 0;
  std::uint64_t bytes = 0;
  std::map<std::uint16_t, std::array<std::uint64_t, 8>> counts;
  for (Slot slot = 0; slot < slab_.size(); ++slot) {
    const Entry& entry = slab_[slot];
    const EntryState state = entry.entry_state();
    if (state == EntryState::kFree) {
      if (seen[slot] != 0) problem("a free entry is in a list");
      continue;
    }
    if (seen[slot] != 1) {
      problem("job " + entry.id.to_string() + " is in " + std::to_string(seen[slot]) + " places");
    }
    if (state == EntryState::kZombie) continue;
    ++known;
    if (state != EntryState::kDone) ++live;
    ++counts[static_cast<std::uint16_t>(entry.queue)][entry.state];
    bytes += entry.body_bytes + entry.details_bytes;
    if (ids_.find(entry.id) != slot) problem("job " + entry.id.to_string() + " cannot be found by its id");
    if (state != EntryState::kDone && entry.body_bytes == 0) problem("job " + entry.id.to_string() + " has no body");
  }
  for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
    const auto number = static_cast<std::uint16_t>(queue);
    for (std::size_t state = 0; state < 8; ++state) {
      const std::uint64_t counted = queues_[number].counts[state];
      if (counted != counts[number][state]) {
        problem(differs("queue " + queues_.names()[number] + ", state " + std::to_string(state), counted,
                        counts[number][state]));
      }
    }
  }
  if (ids_.size() != known) problem(differs("ids", ids_.size(), known));
  if (live_.total() != bytes) problem(differs("live bytes", live_.total(), bytes));
  const std::uint64_t gone = counters_.done + counters_.removed();
  if (counters_.accepted != gone + live) problem(differs("accepted", counters_.accepted, gone + live));
  return problems;
}

}  // namespace bide::engine
