// Entry: what the engine keeps in memory of a job. Bodies, headers, policies and errors stay in the journal.

#pragma once

#include <cstdint>

#include "bide/job.h"
#include "bide/job_id.h"
#include "engine/journal/journal.h"

namespace bide::engine {

// The number of an entry in the slab; a job keeps its slot for life, unless it must leave a list that it is in.
using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = 0xffff'ffff;
inline constexpr Slot kLookUp = 0xffff'fffd;  // As an argument: find it by the job's id.
inline constexpr Slot kTaken = 0xffff'fffe;  // In `next`: ready, but out of its lane, about to be granted.

enum class EntryState : std::uint8_t {
  kFree,
  kScheduled,
  kReady,
  kRunning,
  kDone,
  kDead,
  kTombstone,    // The job is gone, but the entry is still linked in a list; freed when the list reaches it.
  kQuarantined,  // Its record cannot be read. Not written down: on disk the job is as it was.
  kWaiting,      // For other jobs; in no list.
};

// Packed, because a hundred million of them must fit.
#pragma pack(push, 4)
struct Entry {
  JobId id;
  Slot next;  // In the one list the entry is in. Running: its place in the table of leases.

  // By the wall clock, or on the clock of spans: State::due() tells. Done and dead: when it finished.
  std::uint64_t due_ms : 44;  // Until the year 2527.
  std::uint64_t due_is_wall : 1;
  std::uint64_t has_group : 1;      // The table of groups tells which.
  std::uint64_t has_relations : 1;  // It waits for jobs, or jobs wait for it, or it has a flow: the table of relations tells.
  std::uint64_t own_id : 1;  // The ledger generated the id, so no caller can send it again. Not known after a restart.
  std::uint64_t queue : 16;

  std::uint64_t body_address : 48;  // Of the record with the job; 0 when done.
  std::uint64_t kind : 16;

  std::uint64_t details_address : 48;  // Of the record with its past or its result; 0 when there is none.
  std::uint64_t attempts : 15;
  std::uint64_t epoch : 1;  // Flips when the entry has been saved in the snapshot under way.

  std::uint64_t body_bytes : 25;
  std::uint64_t details_bytes : 25;
  std::int64_t priority : 8;
  std::uint64_t state : 4;
  std::uint64_t has_expiry : 1;
  std::uint64_t has_unique_key : 1;

  EntryState entry_state() const { return static_cast<EntryState>(state); }
  void set_state(EntryState value) { state = static_cast<std::uint8_t>(value) & 15u; }
  std::int64_t due() const { return static_cast<std::int64_t>(due_ms); }
  void set_due(std::int64_t ms) { due_ms = static_cast<std::uint64_t>(ms < 0 ? 0 : ms) & ((1ull << 44) - 1); }

  journal::RecordRef body() const { return {body_address, static_cast<std::uint32_t>(body_bytes)}; }
  journal::RecordRef details() const { return {details_address, static_cast<std::uint32_t>(details_bytes)}; }
  bool has_details() const { return details_bytes != 0; }
  void set_body(journal::RecordRef ref) {
    body_address = ref.address & ((1ull << 48) - 1);
    body_bytes = ref.bytes & ((1u << 25) - 1);
  }
  void set_details(journal::RecordRef ref) {
    details_address = ref.address & ((1ull << 48) - 1);
    details_bytes = ref.bytes & ((1u << 25) - 1);
  }
};
#pragma pack(pop)
static_assert(sizeof(Entry) == 52);

}  // namespace bide::engine
