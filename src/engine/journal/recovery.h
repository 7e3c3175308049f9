// Recovery: reads the segments of a journal from the beginning to the end, and decides at the first batch that is not
// whole whether the power went while it was being written (then it is cut off, and reported) or whether something that
// had been durable has changed (then nothing is touched, and the error says where).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/journal/journal.h"
#include "platform/disk.h"

namespace bide::engine::journal {

struct Recovered {
  // Without the last one when it was never finished: it is to be made again, at `next_base`.
  std::vector<Segment> segments;
  std::vector<std::uint64_t> file_bytes;  // For each of them, zero-filled room included.
  bool last_is_active = false;
  Address next_base = 0;  // When last_is_active is false.

  Address synced_point = 0;  // The greatest that was found in any header.
  Address data_end = 0;      // After the last batch that holds more than a mark.
  std::vector<TornTail> torn_tails;
};

Result<Recovered> recover(platform::Disk& disk, const std::string& directory, Address from,
                          const RecordVisitor& visitor, bool read_ahead);

}  // namespace bide::engine::journal
