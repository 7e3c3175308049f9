// ClockFile: how far our time was from elapsed time when the journal was written, so that the next opening in the same
// boot of the machine knows how much time has passed, whatever became of the wall clock. It says nothing in another boot;
// so it is never synced, and what happens to it does no harm. The format is drawn in clock_file.cc.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/journal/journal.h"
#include "platform/disk.h"

namespace bide::engine {

class ClockFile {
 public:
  ClockFile(platform::Disk& disk, const std::string& directory) : disk_(disk), path_(directory + "/clock") {}

  // The offset with which the end of the journal was written. Nothing: not known, or of another boot.
  std::optional<std::int64_t> read(const std::string& boot, journal::Address journal_end) const;

  // The offset is `before_us`; from the record at `at` on, which is not written yet, it is `after_us`. When this cannot be
  // written down the file is removed.
  Status write(const std::string& boot, std::int64_t before_us, std::int64_t after_us, journal::Address at) const;
  // So that a later opening does not believe what this one could not read.
  Status remove() const;

 private:
  platform::Disk& disk_;
  const std::string path_;
};

}  // namespace bide::engine
