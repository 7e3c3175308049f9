#include "engine/journal/recovery.h"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "engine/journal/batch_reader.h"
#include "engine/journal/layout.h"
#include "engine/journal/synced_mark.h"

namespace bide::engine::journal {
namespace {

using platform::File;
using platform::OpenMode;

struct SegmentFile {
  Address base = 0;
  std::string path;
  std::uint64_t size = 0;
  std::optional<SegmentHeader> header;
};

// Where reading had to stop before the end.
struct Stop {
  std::size_t segment = 0;
  std::uint64_t offset = 0;
  std::string what;
};

// A part of a segment in memory: the batches that were found in it, and how it ended.
struct Part {
  struct Batch {
    std::uint64_t offset = 0;
    BatchHeader header;
    std::string_view bytes;
  };
  ReadBuffer buffer;
  std::vector<Batch> batches;
  BatchReader::Found last = BatchReader::Found::kBatch;  // kBatch: the segment goes on at `offset`.
  std::uint64_t offset = 0;
  Status status;
};

constexpr std::size_t kPartBytes = 8 << 20;

std::unique_ptr<Part> read_part(File& file, Address base, std::uint64_t offset, std::uint64_t limit, ReadBuffer buffer) {
  auto part = std::make_unique<Part>();
  part->buffer = std::move(buffer);
  BatchReader reader(file, base, offset, limit, part->buffer, std::min<std::uint64_t>(kPartBytes, limit - offset + 1));
  do {
    Result<BatchReader::Found> found = reader.next();
    if (!found) {
      part->status = found.error();
      return part;
    }
    part->last = *found;
    part->offset = reader.offset();
    if (*found != BatchReader::Found::kBatch) return part;
    part->batches.push_back({reader.offset(), reader.header(), reader.batch()});
    part->offset += reader.batch().size();
  } while (reader.has_next());
  return part;
}

class Recovery {
 public:
  Recovery(platform::Disk& disk, const std::string& directory, Address from, const RecordVisitor& visitor, bool read_ahead)
      : disk_(disk), directory_(directory), from_(from), visitor_(visitor), read_ahead_(read_ahead) {}

  Result<Recovered> run();

 private:
  Status find_segments();
  Status inspect(SegmentFile& segment);
  Status find_start();
  Status read_all();
  Status read_segment(std::size_t index);
  // The part of the segment that begins at the offset, while the one that will be asked for next is being read.
  Result<std::unique_ptr<Part>> part_at(std::size_t index, std::uint64_t offset);
  struct Ahead {
    std::size_t segment = 0;
    std::uint64_t offset = 0;
    std::shared_ptr<File> file;
    std::future<std::unique_ptr<Part>> part;
  };
  Result<Ahead> begin_part(std::size_t index, std::uint64_t offset, std::shared_ptr<File> file);
  Status settle_end();
  Status look_for_proof();
  Status cut();
  Status cut_file(const SegmentFile& segment, std::uint64_t offset);
  Recovered result() const;

  Result<std::unique_ptr<File>> open(const SegmentFile& segment, OpenMode mode) {
    return disk_.open(segment.path, mode);
  }

  platform::Disk& disk_;
  const std::string& directory_;
  const Address from_;
  const RecordVisitor& visitor_;
  const bool read_ahead_;

  ReadBuffer buffer_;
  std::vector<SegmentFile> segments_;
  std::vector<Address> ends_;
  std::size_t start_ = 0;  // The segment that holds from_.
  Address end_ = 0;        // Of what has been read and is whole.
  std::optional<Stop> stop_;
  Recovered out_;
  std::optional<Ahead> ahead_;
  ReadBuffer spare_;  // Of a part that has been seen.
};

Status Recovery::find_segments() {
  Result<std::vector<std::string>> names = disk_.list(directory_);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (const auto base = parse_segment_name(name)) segments_.push_back({*base, directory_ + "/" + name, 0, {}});
  }
  std::sort(segments_.begin(), segments_.end(), [](const auto& a, const auto& b) { return a.base < b.base; });
  for (SegmentFile& segment : segments_) {
    if (Status status = inspect(segment); !status) return status;
  }
  return {};
}

Status Recovery::inspect(SegmentFile& segment) {
  auto file = open(segment, OpenMode::kReadOnly);
  if (!file) return file.error();
  Result<std::uint64_t> size = (*file)->size();
  if (!size) return size.error();
  segment.size = *size;
  char bytes[kSegmentHeaderBytes];
  Result<std::size_t> got = (*file)->read(0, bytes, sizeof bytes);
  if (!got) return got.error();
  segment.header = decode_segment_header({bytes, *got});
  if (!segment.header) return {};
  if (segment.header->version > kFormatVersion) {
    return Error{ErrorCode::kNewerVersion,
                 segment.path + ": format version " + std::to_string(segment.header->version) +
                     ", written by a newer bide; this one knows versions up to " + std::to_string(kFormatVersion)};
  }
  if (segment.header->version != kFormatVersion) {
    return damaged(segment.path, 8, "format version " + std::to_string(segment.header->version) + " never existed");
  }
  if (segment.header->base != segment.base) {
    // A file that was being made may show a header that lay in the same place of the disk before.
    if (segment.size <= kSegmentHeaderBytes) {
      segment.header.reset();
      return {};
    }
    return damaged(segment.path, 16,
                   "it begins at address " + segment_name(segment.header->base).substr(0, 16) +
                       ", which is not its name; was it renamed?");
  }
  out_.synced_point = std::max(out_.synced_point, segment.header->synced);
  return {};
}

Status Recovery::find_start() {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), from_,
                                      [](Address from, const SegmentFile& segment) { return from < segment.base; });
  if (after == segments_.begin()) {
    if (segments_.empty() && from_ == 0) return {};
    return Error{ErrorCode::kDamaged, directory_ + ": the segment that holds address " + std::to_string(from_) +
                                          " is missing; `bide store check` says more, `bide store repair` keeps what can be read"};
  }
  start_ = static_cast<std::size_t>(after - segments_.begin()) - 1;
  for (std::size_t i = 0; i < start_; ++i) {
    if (!segments_[i].header) return damaged(segments_[i].path, 0, "the segment's header fails its checksum");
    ends_.push_back(std::min(segments_[i].base + segments_[i].size, segments_[i + 1].base));
  }
  end_ = segments_[start_].base;
  return {};
}

Status Recovery::read_all() {
  for (std::size_t i = start_; i < segments_.size() && !stop_; ++i) {
    const SegmentFile& segment = segments_[i];
    if (segment.base < end_) {
      return damaged(segment.path, 16, "it begins before the end of the segment before it");
    }
    if (segment.base > end_) {
      const SegmentFile& before = segments_[i - 1];
      stop_ = {i - 1, end_ - before.base,
               "the segment ends here, but the next one begins at address " + segment_name(segment.base).substr(0, 16) +
                   ": something is missing"};
    } else if (!segment.header) {
      stop_ = {i, 0, "the segment's header fails its checksum"};
    } else if (Status status = read_segment(i); !status) {
      return status;
    }
  }
  return {};
}

// Opened once for all parts of a segment.
Result<Recovery::Ahead> Recovery::begin_part(std::size_t index, std::uint64_t offset, std::shared_ptr<File> file) {
  const SegmentFile& segment = segments_[index];
  if (file == nullptr) {
    auto opened = open(segment, OpenMode::kReadOnly);
    if (!opened) return opened.error();
    file = std::move(*opened);
  }
  auto part = std::async(read_ahead_ ? std::launch::async : std::launch::deferred,
                         [file, base = segment.base, offset, limit = segment.size,
                          buffer = std::exchange(spare_, ReadBuffer())]() mutable {
                           return read_part(*file, base, offset, limit, std::move(buffer));
                         });
  return Ahead{index, offset, std::move(file), std::move(part)};
}

Result<std::unique_ptr<Part>> Recovery::part_at(std::size_t index, std::uint64_t offset) {
  if (!ahead_ || ahead_->segment != index || ahead_->offset != offset) {
    auto begun = begin_part(index, offset, nullptr);
    if (!begun) return begun.error();
    ahead_ = std::move(*begun);
  }
  std::unique_ptr<Part> part = ahead_->part.get();
  const std::shared_ptr<File> file = ahead_->file;
  ahead_.reset();
  if (!part->status) return part->status.error();
  const bool goes_on = part->last == BatchReader::Found::kBatch;
  const std::size_t next = goes_on ? index : index + 1;
  if (next >= segments_.size() || !segments_[next].header) return part;
  if (!goes_on && !read_ahead_) return part;
  auto begun = begin_part(next, goes_on ? part->offset : kSegmentHeaderBytes, goes_on ? file : nullptr);
  if (begun) ahead_ = std::move(*begun);  // Otherwise it is said when the part is wanted.
  return part;
}

Status Recovery::read_segment(std::size_t index) {
  const SegmentFile& segment = segments_[index];
  for (std::uint64_t offset = kSegmentHeaderBytes;;) {
    auto part = part_at(index, offset);
    if (!part) return part.error();
    for (const Part::Batch& batch : (*part)->batches) {
      end_ = segment.base + batch.offset;
      const BatchHeader& header = batch.header;
      out_.synced_point = std::max(out_.synced_point, header.synced);
      const bool only_mark = header.records == 1 && batch.bytes[kBatchHeaderBytes + 8] == char{kMarkType};
      if (!only_mark) out_.data_end = end_ + header.bytes;
      if (end_ + header.bytes <= from_) continue;
      if (Status status = visit_batch(batch.bytes, header, end_, from_, visitor_); !status) return status;
    }
    spare_ = std::move((*part)->buffer);
    offset = (*part)->offset;
    end_ = segment.base + offset;
    if ((*part)->last == BatchReader::Found::kInvalid) stop_ = {index, offset, "a batch fails its checksum"};
    if ((*part)->last != BatchReader::Found::kBatch) break;
  }
  ends_.push_back(end_);
  return {};
}

// Nothing has been changed so far; whatever is refused is refused here.
Status Recovery::settle_end() {
  const bool proven = std::max(out_.synced_point, from_) > end_;
  if (proven && !stop_) {
    const SegmentFile& last = segments_.back();
    return damaged(last.path, end_ - last.base,
                   "the journal ends here, at address " + std::to_string(end_) + ", but it was durable up to address " +
                       std::to_string(std::max(out_.synced_point, from_)));
  }
  if (!stop_) return {};
  if (proven) return damaged(segments_[stop_->segment].path, stop_->offset, stop_->what + ", and it had been synced");
  if (Status status = look_for_proof(); !status) return status;
  return cut();
}

// Pages that were not synced reach the disk in any order, so a whole batch behind a broken one proves nothing by being
// there; but what it says about the synced point was true when it was written.
Status Recovery::look_for_proof() {
  for (std::size_t i = stop_->segment; i < segments_.size(); ++i) {
    const SegmentFile& segment = segments_[i];
    auto file = open(segment, OpenMode::kReadOnly);
    if (!file) return file.error();
    const std::uint64_t offset = i == stop_->segment ? stop_->offset : 0;
    Result<Address> synced = newest_synced_point(**file, segment.base, offset, segment.size, buffer_);
    if (!synced) return synced.error();
    if (*synced > end_) {
      return damaged(segments_[stop_->segment].path, stop_->offset, stop_->what + ", and it had been synced");
    }
  }
  return {};
}

// The newest first: a crash in between leaves a journal that is cut a little less.
Status Recovery::cut() {
  const std::size_t keep = stop_->offset == 0 ? stop_->segment : stop_->segment + 1;
  while (segments_.size() > keep) {
    if (Status status = cut_file(segments_.back(), 0); !status) return status;
    segments_.pop_back();
  }
  ends_.resize(keep);
  if (stop_->offset > 0) {
    if (Status status = cut_file(segments_.back(), stop_->offset); !status) return status;
    segments_.back().size = stop_->offset;
    ends_.back() = end_;
  }
  std::reverse(out_.torn_tails.begin(), out_.torn_tails.end());
  return disk_.sync_directory(directory_);
}

Status Recovery::cut_file(const SegmentFile& segment, std::uint64_t offset) {
  auto file = open(segment, OpenMode::kReadWrite);
  if (!file) return file.error();
  Result<std::uint64_t> bytes = bytes_before_zeros(**file, offset, segment.size, buffer_);
  if (!bytes) return bytes.error();
  if (*bytes > 0) out_.torn_tails.push_back({segment.path, offset, *bytes});
  if (offset == 0) return disk_.remove(segment.path);
  if (segment.size == offset) return {};
  if (Status status = (*file)->truncate(offset); !status) return status;
  return (*file)->sync();
}

Recovered Recovery::result() const {
  Recovered out = out_;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    out.segments.push_back({segments_[i].base, ends_[i], segments_[i].path});
    out.file_bytes.push_back(segments_[i].size);
  }
  out.next_base = end_;
  // Also where a newer one was being made when the power went: its name is gone, and the one before goes on, because
  // the disk may be full.
  out.last_is_active = !segments_.empty();
  return out;
}

Result<Recovered> Recovery::run() {
  Result<Address> mark = SyncedMark(disk_, directory_).read();
  if (!mark) return mark.error();
  out_.synced_point = *mark;
  if (Status status = find_segments(); !status) return status.error();
  if (Status status = find_start(); !status) return status.error();
  if (segments_.empty()) {
    if (out_.synced_point == 0) return result();
    return Error{ErrorCode::kDamaged, directory_ + ": every segment is missing, and the journal was durable up to address " +
                                          std::to_string(out_.synced_point)};
  }
  if (Status status = read_all(); !status) return status.error();
  if (Status status = settle_end(); !status) return status.error();
  return result();
}

}  // namespace

Result<Recovered> recover(platform::Disk& disk, const std::string& directory, Address from,
                          const RecordVisitor& visitor, bool read_ahead) {
  return Recovery(disk, directory, from, visitor, read_ahead).run();
}

}  // namespace bide::engine::journal
