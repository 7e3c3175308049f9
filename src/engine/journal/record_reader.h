// RecordReader: reads single records out of segments, ahead when they are asked for in order. It keeps a bounded number
// of files open.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bide/result.h"
#include "engine/journal/batch_reader.h"
#include "engine/journal/journal.h"
#include "platform/disk.h"

namespace bide::engine::journal {

class RecordReader {
 public:
  static constexpr std::size_t kOpenFiles = 64;
  static constexpr std::size_t kSmallestWindow = 4 << 10;
  static constexpr std::size_t kLargestWindow = 1 << 20;

  explicit RecordReader(platform::Disk& disk) : disk_(disk) {}

  // The bytes of the record, unverified; valid until the next call. `segment` holds it; nothing at or after its end
  // is read.
  Result<std::string_view> read(const Segment& segment, RecordRef ref);

  // The segment's file, opened for reading.
  Result<platform::File*> file(const Segment& segment);
  // The same, for as long as it is held.
  Result<std::shared_ptr<platform::File>> shared_file(const Segment& segment);
  // They are opened again when they are needed.
  void close_files() { files_.clear(); }
  // The segment is going to be deleted, or what was read of it is not right.
  void forget(const Segment& segment);

 private:
  struct OpenFile {
    Address base = 0;
    std::uint64_t used = 0;
    std::shared_ptr<platform::File> file;
  };

  platform::Disk& disk_;
  std::vector<OpenFile> files_;
  std::uint64_t uses_ = 0;

  ReadBuffer buffer_;
  Address window_at_ = 0;
  std::size_t window_bytes_ = 0;
  Address last_end_ = 0;        // Of the record read last.
  std::size_t read_ahead_ = 0;  // 0: the last reads were not in order.
};

}  // namespace bide::engine::journal
