// Checker: holds the histories of everybody who used a broker against one another, and against what is in the broker
// after the faults are over and the work is done. Pure: it is given everything, so that its own tests can give it
// histories that no right broker would cause.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bide/broker.h"
#include "crash/history.h"

namespace bide::crash {

// What was found in the broker at the end.
struct Readback {
  std::vector<std::pair<std::string, JobState>> jobs = {};  // Id and state, as listed. Empty without `inspect`.
  std::map<std::string, std::uint64_t> dead_by_reason = {};
  std::vector<std::string> audit_problems = {};  // Empty without `audit`.
};

struct Findings {
  // Must be zero.
  std::map<std::string, std::uint64_t> violations = {};  // All names are there, also those with nothing to count.
  std::vector<std::string> examples = {};                // The first few, in words.

  // Must be enough, or nothing was tested.
  std::uint64_t confirmed = 0;
  std::uint64_t starts = 0;
  std::uint64_t accepted_outcomes = 0;
  std::uint64_t refused_outcomes = 0;
  std::uint64_t effects = 0;
  std::map<std::string, std::uint64_t> kills = {};   // By role.
  std::map<std::string, std::uint64_t> pauses = {};  // By role.

  // Reported.
  std::map<std::string, std::uint64_t> duplicates = {};  // Started again, by reason.
  std::uint64_t retries = 0;                             // Started again because an outcome said so.
  std::uint64_t unsaid = 0;  // Done or dead, though nobody lived to hear that it was accepted.
  std::map<std::string, std::uint64_t> dead = {};
  std::int64_t latest_start_ms = 0;      // After the job was due, for first attempts.
  std::int64_t longest_recovery_ms = 0;  // From a kill to the next start anywhere.

  std::uint64_t violation_count() const;
  std::string report() const;
};

inline constexpr const char* kViolations[] = {
    "lost",              // Confirmed, never started, and nowhere.
    "vanished",          // Started, and there is no record of its end.
    "unfinished",        // Neither done nor dead though there was time and somebody to run it.
    "early",             // Started before it was due.
    "run_after_settle",  // Started with a later token than the one that settled it.
    "overlap",           // Two valid leases at once, or one lease started twice.
    "stale_accepted",    // An outcome was accepted though a later lease had begun.
    "unexpected",        // A job that nobody asked for, or an effect of an outcome that was refused.
    "duplicate_id",      // One id was new twice, or is listed twice.
    "uncounted",         // An attempt has the number of an earlier one that was not returned.
    "unexplained",       // Started again without any of the reasons that there may be.
    "audit",             // What the broker says of itself.
};

// Which checks apply depends on what the broker can do.
Findings check(const std::vector<Event>& events, const Readback& readback, const Capabilities& can);

}  // namespace bide::crash
