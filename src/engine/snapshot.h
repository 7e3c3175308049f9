// Snapshot: the state at one address of the journal, in a file, so that opening reads the journal from there only. It
// is written a piece at a time while the engine goes on: an entry that is about to change is saved first, as it was.
// The format is drawn in docs/formats/snapshot.md.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bide/result.h"
#include "engine/state.h"
#include "platform/disk.h"

namespace bide::engine {

// A file in `directory`, named after the address.
std::string snapshot_path(const std::string& directory, journal::Address at);

class SnapshotWriter {
 public:
  // Of the state as it is now; everything in it is synced, and `at` is the end of the journal.
  SnapshotWriter(platform::Disk& disk, std::string directory, State& state, journal::Address at);
  // Gives up if it is not complete; the file under way is left for the next writer to overwrite.
  ~SnapshotWriter();

  // Writes about so many bytes more. True: it is complete, durable and has its name.
  Result<bool> step(std::size_t bytes);

  journal::Address at() const { return at_; }

 private:
  // The numbers that names have in the file: there they have no gaps.
  static std::vector<std::uint16_t> numbers_in_file(const Names& names);
  void save_row(Slot slot);
  void begin();
  Status flush_block(std::uint8_t type, std::string& block);
  Status flush_more(std::size_t least);

  platform::Disk& disk_;
  const std::string directory_;
  State& state_;
  const journal::Address at_;
  const Slot end_;  // Slots from here on are new.
  // By number at the beginning: an entry that would change is saved first, so no row has a number given since.
  const std::vector<std::uint16_t> queues_;
  const std::vector<std::uint16_t> kinds_;
  const std::int64_t shift_ms_;  // As it was: steps of the clock since then are in the journal.
  std::unique_ptr<platform::File> file_;
  std::uint64_t offset_ = 0;
  std::string head_;   // Header and the blocks before the rows, as they were at the beginning.
  std::string block_;  // Rows not written yet.
  std::string relations_;  // Of those rows, likewise.
  std::string steps_;
  bool has_held_keys_ = false;  // Some are not written yet.
  std::string held_key_;        // The last one that is.
  std::uint64_t rows_ = 0;
  Slot cursor_ = 0;
  bool complete_ = false;
};

// Loads the newest snapshot into an empty state; its address, or nothing when there is none.
// kDamaged names file and offset. With read_ahead another thread reads and verifies while this one decodes.
Result<std::optional<journal::Address>> load_snapshot(platform::Disk& disk, const std::string& directory, State& state,
                                                      bool read_ahead = false);

// Removes every snapshot but this one, and unfinished ones.
Status remove_other_snapshots(platform::Disk& disk, const std::string& directory, journal::Address keep);

}  // namespace bide::engine
