// SegmentWriter: the file of the segment that is being written to. It knows how much room has been taken for it on the
// disk, and how much of that has been filled with zeros already. Addresses are the journal's.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "engine/journal/layout.h"
#include "platform/disk.h"

namespace bide::engine::journal {

class SegmentWriter {
 public:
  // Makes the file, with its header and with room for `room` bytes beside it. Durable with its name when `durable`.
  // After an error the file is not there; when even that cannot be made sure the error is not kDiskFull.
  static Result<std::unique_ptr<SegmentWriter>> create(platform::Disk& disk, const std::string& directory,
                                                       const SegmentHeader& header, std::uint64_t room, bool durable);
  static Result<std::unique_ptr<SegmentWriter>> open(platform::Disk& disk, const Segment& segment,
                                                     std::uint64_t file_bytes);

  Address base() const { return base_; }
  const std::string& path() const { return path_; }
  std::uint64_t file_bytes() const { return file_end_ - base_; }
  Address file_end() const { return file_end_; }

  Status write(Address at, std::string_view bytes);
  // The same in two halves: room is counted in now, and the bytes are written later, perhaps by another thread.
  void expect(Address at, std::size_t bytes);
  Status write_expected(Address at, std::string_view bytes) { return file_->write(at - base_, bytes); }
  Status sync() { return file_->sync(); }
  // Takes space up to `end`, in large steps where there is space for them. kDiskFull: nothing has changed.
  Status take_room(Address end);
  // Fills the file with zeros up to `end`. kDiskFull: nothing has changed.
  Status write_zeros(Address end) { return fill(file_end_, end); }
  // Gives back what lies beyond `end`.
  Status trim(Address end);

 private:
  SegmentWriter(std::unique_ptr<platform::File> file, std::string path, Address base)
      : file_(std::move(file)), path_(std::move(path)), base_(base), file_end_(base), room_end_(base) {}

  Status fill(Address from, Address end);

  std::unique_ptr<platform::File> file_;
  const std::string path_;
  const Address base_;
  Address file_end_;
  Address room_end_;  // There is room up to here.
};

}  // namespace bide::engine::journal
