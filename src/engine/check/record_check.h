// A record's payload, taken apart field by field and checked against the grammar in docs/formats/journal.md.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job_id.h"
#include "engine/check/bytes.h"

namespace bide::engine::check {

enum class RecordType : std::uint8_t {
  kMark = 1,
  kAccepted,
  kGranted,
  kChanged,
  kDone,
  kRemoved,
  kQueue,
  kClock,
  kMoved,
  kCancelAsked,
  kDelivered,
  kBound,
  kRules,
  kSchedule,
  kDecisions,
  kStep = 17,
};

// "accepted"; empty when there is no such type.
std::string_view name_of_type(std::uint8_t type);

// What the record does to jobs; what does not matter for counting them is only checked.
struct RecordFacts {
  RecordType type = RecordType::kMark;
  std::vector<JobId> ids = {};      // One, or of granted, removed and delivered any number.
  bool replaces_body = false;       // accepted: of a running job, which waits again.
  bool edits = false;               // accepted: of a job that waits or is dead.
  bool dead = false;                // changed.
  std::uint8_t cause = 0;           // changed, removed.
  std::uint64_t moved_from = 0;     // moved: the old address.
  RecordType inner = RecordType::kMark;
};

// Nothing when it is right; otherwise what is wrong.
std::optional<std::string> take_apart(std::uint8_t type, std::uint8_t version, std::string_view payload,
                                      RecordFacts& facts);

// Of a bound record, and of a snapshot.
void skip_binding(Bytes& in);
// The same of a rules record.
std::optional<std::string> check_rules(Bytes& in);
std::optional<std::string> check_schedule(Bytes& in);
std::optional<std::string> check_decision(Bytes& in);

}  // namespace bide::engine::check
