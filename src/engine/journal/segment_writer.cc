#include "engine/journal/segment_writer.h"

#include <algorithm>

namespace bide::engine::journal {
namespace {

constexpr std::uint64_t kRoomStep = 1 << 20;

}  // namespace

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::create(platform::Disk& disk, const std::string& directory,
                                                             const SegmentHeader& header, std::uint64_t room,
                                                             bool durable) {
  const std::string path = directory + "/" + segment_name(header.base);
  Result<std::unique_ptr<platform::File>> file = disk.open(path, platform::OpenMode::kCreate);
  if (!file) return file.error();
  std::unique_ptr<SegmentWriter> writer(new SegmentWriter(std::move(*file), path, header.base));
  const auto fill = [&]() -> Status {
    // What an earlier attempt may have left.
    if (Status status = writer->file_->truncate(0); !status) return status;
    if (room > 0) {
      if (Status status = writer->take_room(header.base + kSegmentHeaderBytes + room); !status) return status;
    }
    if (Status status = writer->write(header.base, encode(header)); !status) return status;
    if (!durable) return {};
    if (Status status = writer->sync(); !status) return status;
    return disk.sync_directory(directory);
  };
  Status filled = fill();
  if (filled) return writer;
  // Its name must not come back: the address it begins at will be used by the segment before it.
  writer.reset();
  if (Status status = disk.remove(path); !status) return status.error();
  if (durable) {
    if (Status status = disk.sync_directory(directory); !status) {
      return Error{ErrorCode::kIoError, status.error().message};
    }
  }
  return filled.error();
}

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::open(platform::Disk& disk, const Segment& segment,
                                                           std::uint64_t file_bytes) {
  Result<std::unique_ptr<platform::File>> file = disk.open(segment.path, platform::OpenMode::kReadWrite);
  if (!file) return file.error();
  std::unique_ptr<SegmentWriter> writer(new SegmentWriter(std::move(*file), segment.path, segment.base));
  writer->file_end_ = segment.base + file_bytes;
  // What lies behind the last batch may be a hole, if the power went.
  writer->room_end_ = segment.end;
  return writer;
}

Status SegmentWriter::write(Address at, std::string_view bytes) {
  if (Status status = write_expected(at, bytes); !status) return status;
  expect(at, bytes.size());
  return {};
}

void SegmentWriter::expect(Address at, std::size_t bytes) {
  file_end_ = std::max(file_end_, at + bytes);
  room_end_ = std::max(room_end_, at + bytes);
}

Status SegmentWriter::take_room(Address end) {
  if (end <= room_end_) return {};
  const Address generous = base_ + (end - base_ + kRoomStep - 1) / kRoomStep * kRoomStep;
  Status taken = file_->allocate(room_end_ - base_, generous - room_end_);
  if (taken) {
    room_end_ = generous;
    return {};
  }
  if (taken.error().code == ErrorCode::kUnsupported) {
    // Zeros take the space now, so that a full disk is found here and not by a batch that has been applied.
    taken = fill(room_end_, generous);
    return taken || taken.error().code != ErrorCode::kDiskFull ? taken : fill(room_end_, end);
  }
  if (taken.error().code != ErrorCode::kDiskFull) return taken;
  if (Status status = file_->allocate(room_end_ - base_, end - room_end_); !status) return status;
  room_end_ = end;
  return {};
}

Status SegmentWriter::fill(Address from, Address end) {
  if (end <= from) return {};
  if (Status status = platform::write_zeros(*file_, from - base_, end - base_); !status) {
    // Some of them may be there, and hold what is left of the disk.
    if (status.error().code == ErrorCode::kDiskFull) {
      if (Status cut = file_->truncate(file_end_ - base_); !cut) return cut;
    }
    return status;
  }
  expect(from, end - from);
  return {};
}

Status SegmentWriter::trim(Address end) {
  if (std::max(file_end_, room_end_) <= end) return {};
  if (Status status = file_->truncate(end - base_); !status) return status;
  file_end_ = room_end_ = end;
  return {};
}

}  // namespace bide::engine::journal
