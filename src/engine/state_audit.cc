// State, the audit: every accepted job is in exactly one list. It describes one moment and works in bounded pieces while
// requests go on: first through all lists, then through all entries.

#include <cstdlib>
#include <string>

#include "engine/state.h"
#include "platform/fatal.h"

namespace bide::engine {

namespace {

constexpr std::size_t kMostProblems = 20;

// Of an entry.
enum Seen : std::uint8_t {
  kNotYet,
  kInAList,
  kCounted,  // It has changed since, or is new: there is no more to say.
};

using Counts = decltype(Queue::counts);

std::string differs(const std::string& what, std::uint64_t counted, std::uint64_t found) {
  return what + ": counted " + std::to_string(counted) + ", found " + std::to_string(found);
}

}  // namespace

struct State::Audit {
  struct Free {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
  };

  explicit Audit(const State& state)
      : end(state.slab_.size()),
        // As for entries: what is not touched costs nothing.
        seen(static_cast<std::uint8_t*>(std::calloc(end + 1u, 1))),
        counters(state.counters_),
        ids(state.ids_.size()),
        bytes(state.live_.total()),
        found(state.queues_.size()),
        found_waiting_bytes(state.queues_.size()),
        found_groups(state.groups_.size()) {
    platform::require(seen != nullptr, "out of memory for an audit");
    for (std::size_t i = 0; i < state.queues_.size(); ++i) {
      const Queue& queue = state.queues_[static_cast<std::uint16_t>(i)];
      counts.push_back(queue.counts);
      waiting_bytes.push_back(queue.waiting_bytes);
    }
    for (GroupNumber i = 0; i < state.groups_.size(); ++i) groups.push_back({state.groups_[i].jobs, state.groups_[i].running});
  }

  void problem(std::string text) {
    if (problems.size() < kMostProblems) problems.push_back(std::move(text));
  }

  void count(const Entry& entry, GroupNumber group) {
    const EntryState state = entry.entry_state();
    if (state == EntryState::kFree || state == EntryState::kTombstone) return;
    ++known;
    if (state != EntryState::kDone) ++live;
    ++found[entry.queue][entry.state];
    found_bytes += entry.body_bytes + entry.details_bytes;
    if (is_waiting(entry)) found_waiting_bytes[entry.queue] += entry.body_bytes;
    if (group == kNoGroup) return;
    ++found_groups[group].jobs;
    if (state == EntryState::kRunning) ++found_groups[group].running;
  }

  const Slot end;  // Slots from here on are new.
  const std::unique_ptr<std::uint8_t[], Free> seen;
  // As it was when the audit began.
  const Counters counters;
  const std::uint64_t ids;
  const std::uint64_t bytes;
  std::vector<Counts> counts;
  std::vector<std::uint64_t> waiting_bytes;
  struct OfGroup {
    std::uint32_t jobs = 0;
    std::uint32_t running = 0;
    friend bool operator==(const OfGroup&, const OfGroup&) = default;
  };
  std::vector<OfGroup> groups;

  std::size_t lease = 0;  // The next one to be looked at, and the next entry.
  Slot slot = 0;
  std::uint64_t known = 0;
  std::uint64_t live = 0;
  std::uint64_t found_bytes = 0;
  std::vector<Counts> found;
  std::vector<std::uint64_t> found_waiting_bytes;
  std::vector<OfGroup> found_groups;
  std::vector<std::string> problems;
};

void State::begin_audit() {
  audit_ = std::make_shared<Audit>(*this);
  begin_walk();
}

void State::count_for_audit(Slot slot) {
  if (slot >= audit_->end || audit_->seen[slot] == kCounted) return;
  if (slot >= audit_->slot) audit_->count(slab_[slot], group_of(slot));
  audit_->seen[slot] = kCounted;
}

void State::see_for_audit(Slot slot, EntryState expected) {
  if (!audit_ || slot >= audit_->end || audit_->seen[slot] == kCounted) return;
  if (audit_->seen[slot] == kInAList) audit_->problem("job " + slab_[slot].id.to_string() + " is in more than one place");
  if (slab_[slot].entry_state() != expected) {
    audit_->problem("job " + slab_[slot].id.to_string() + " is in a list of another state");
  }
  audit_->seen[slot] = kInAList;
}

std::optional<std::vector<std::string>> State::audit_piece() {
  Audit& audit = *audit_;
  std::size_t budget = piece_;
  const auto is_over = [&] {
    if (walking_ && !walk(budget)) return false;
    for (; audit.lease < leases_.places().size() && budget > 0; ++audit.lease, --budget) {
      const Slot slot = leases_.places()[audit.lease].slot;
      if (slot != kNoSlot) see_for_audit(slot, EntryState::kRunning);
    }
    if (budget == 0) return false;
    if (audit.slot == 0) {
      for (const auto& [slot, why] : quarantined_) see_for_audit(slot, EntryState::kQuarantined);
    }
    for (; audit.slot < audit.end && budget > 0; ++audit.slot, --budget) {
      const std::uint8_t seen = audit.seen[audit.slot];
      if (seen == kCounted) continue;
      const Entry& entry = slab_[audit.slot];
      const EntryState state = entry.entry_state();
      audit.count(entry, group_of(audit.slot));
      if (state == EntryState::kFree) {
        if (seen == kInAList) audit.problem("a free entry is in a list");
        continue;
      }
      if (state == EntryState::kWaiting) {
        if (seen == kInAList) audit.problem("job " + entry.id.to_string() + " waits for others and is in a list");
        if (!waits(audit.slot)) audit.problem("job " + entry.id.to_string() + " waits for no job");
      } else if (seen == kNotYet) audit.problem("job " + entry.id.to_string() + " is in no place");
      if (state == EntryState::kTombstone) continue;
      if (ids_.find(entry.id) != audit.slot) audit.problem("job " + entry.id.to_string() + " cannot be found by its id");
      if (state != EntryState::kDone && entry.body_bytes == 0) audit.problem("job " + entry.id.to_string() + " has no body");
    }
    return audit.slot == audit.end;
  };
  const bool over = is_over();
  handled_ += piece_ - budget;
  if (!over) return std::nullopt;

  for (std::size_t queue = 0; queue < audit.counts.size(); ++queue) {
    for (std::size_t state = 0; state < audit.counts[queue].size(); ++state) {
      if (audit.counts[queue][state] == audit.found[queue][state]) continue;
      audit.problem(differs("queue " + queues_.names()[static_cast<std::uint16_t>(queue)] + ", state " +
                                std::to_string(state),
                            audit.counts[queue][state], audit.found[queue][state]));
    }
  }
  for (std::size_t queue = 0; queue < audit.waiting_bytes.size(); ++queue) {
    if (audit.waiting_bytes[queue] == audit.found_waiting_bytes[queue]) continue;
    audit.problem(differs("queue " + queues_.names()[static_cast<std::uint16_t>(queue)] + ", bytes that wait",
                          audit.waiting_bytes[queue], audit.found_waiting_bytes[queue]));
  }
  for (std::size_t group = 0; group < audit.groups.size(); ++group) {
    if (audit.groups[group] == audit.found_groups[group]) continue;
    const std::string name = "group " + groups_[static_cast<GroupNumber>(group)].name;
    audit.problem(differs(name + ", jobs", audit.groups[group].jobs, audit.found_groups[group].jobs));
    audit.problem(differs(name + ", running", audit.groups[group].running, audit.found_groups[group].running));
  }
  if (audit.ids != audit.known) audit.problem(differs("ids", audit.ids, audit.known));
  if (audit.bytes != audit.found_bytes) audit.problem(differs("live bytes", audit.bytes, audit.found_bytes));
  const std::uint64_t gone = audit.counters.done + audit.counters.removed();
  if (audit.counters.accepted != gone + audit.live) {
    audit.problem(differs("accepted", audit.counters.accepted, gone + audit.live));
  }
  std::vector<std::string> problems = std::move(audit.problems);
  audit_.reset();
  return problems;
}

}  // namespace bide::engine
