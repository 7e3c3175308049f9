// check_store: reads a data directory that nobody has open, by the pages in docs/formats and with nothing of the
// engine's own code, and says what is in it and what is wrong. It writes nothing.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bide/result.h"
#include "platform/disk.h"

namespace bide::engine::check {

struct Finding {
  enum class Kind : std::uint8_t {
    kDamage,    // Something that had been confirmed is not as it was written.
    kTornTail,  // What was being written when the power went: nobody was told that it is safe.
    kNote,
  };
  Kind kind = Kind::kNote;
  std::string file;  // Path within the directory.
  std::uint64_t offset = 0;
  std::string text;
};

struct StoreReport {
  std::uint64_t segments = 0;
  std::uint64_t batches = 0;
  std::uint64_t records = 0;
  std::map<std::string, std::uint64_t> records_by_type;
  std::uint64_t journal_bytes = 0;  // Of whole batches and headers.

  std::optional<std::uint64_t> snapshot_address;
  std::uint64_t snapshot_rows = 0;

  // False when damage kept the rest of the journal from being understood: then the numbers below are of its beginning.
  bool jobs_complete = true;
  std::uint64_t waiting = 0;  // Scheduled or ready, which is not written down.
  std::uint64_t running = 0;
  std::uint64_t dead = 0;
  std::uint64_t done_remembered = 0;
  std::uint64_t accepted = 0;
  std::uint64_t done = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t deleted = 0;
  std::uint64_t purged = 0;
  std::uint64_t forgotten = 0;

  std::vector<Finding> findings;

  bool damaged() const {
    for (const Finding& finding : findings) {
      if (finding.kind == Finding::Kind::kDamage) return true;
    }
    return false;
  }
};

// Damage is in the report, not an error. kNotFound: there is no store. kBusy: somebody has it open. kNewerVersion,
// kPermissionDenied, kIoError.
Result<StoreReport> check_store(platform::Disk& disk, const std::string& directory);

}  // namespace bide::engine::check
