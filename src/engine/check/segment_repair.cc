#include "engine/check/segment_repair.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "engine/check/record_check.h"
#include "engine/check/segment_scan.h"
#include "engine/check/writing.h"

namespace bide::engine::check {

namespace {

constexpr std::uint64_t kSmallestBatch = 48;  // With one record without payload.

std::uint64_t size_of(const RecordAt& record) { return kRecordHeader + record.payload.size(); }

class Repair {
 public:
  Repair(std::string& content, std::uint64_t base, std::uint64_t synced, bool last)
      : content_(content), base_(base), synced_(synced), last_(last) {}

  SegmentRepair run() {
    std::uint64_t offset = kSegmentHeaderBytes;
    while (offset < content_.size()) {
      const BatchScan scan = scan_batch(content_, offset, base_, [this](const RecordAt&) { ++out_.records; });
      if (scan.batch && scan.problem.empty()) {
        offset += scan.batch->bytes;
        continue;
      }
      if (rest_is_zero(offset) && last_) break;
      if (last_ && base_ + offset >= synced_) {
        lose(offset, content_.size() - offset, "a torn tail: it was being written when the power went, and is cut off");
        content_.resize(offset);
        break;
      }
      offset = mend(offset, scan);
    }
    out_.end = std::min<std::uint64_t>(offset, content_.size());
    for (std::size_t i = 0; i < out_.losses.size(); ++i) out_.losses[i].records_after = out_.records - before_[i];
    return std::move(out_);
  }

 private:
  bool rest_is_zero(std::uint64_t offset) const {
    return content_.find_first_not_of('\0', offset) == std::string::npos;
  }

  void lose(std::uint64_t offset, std::uint64_t bytes, std::string text) {
    out_.losses.push_back({.offset = offset, .bytes = bytes, .text = std::move(text)});
    before_.push_back(out_.records);
    out_.changed = true;
  }

  // Where the next whole header of a batch is, or the end.
  std::uint64_t next_batch(std::uint64_t offset) const {
    for (offset += 8; offset + kBatchHeader <= content_.size(); offset += 8) {
      if (content_.compare(offset, 4, "BTCH") == 0 && scan_batch(content_, offset, base_, nullptr).batch) return offset;
    }
    return content_.size();
  }

  // Makes a whole batch of what begins here, keeping every record that is whole. The end of it.
  std::uint64_t mend(std::uint64_t offset, const BatchScan& scan) {
    const bool header_whole = scan.batch && scan.batch->bytes <= content_.size() - offset;
    content_.resize((content_.size() + 7) / 8 * 8, '\0');
    std::uint64_t end = header_whole ? offset + scan.batch->bytes : next_batch(offset);
    if (end == content_.size() && last_) {
      // Without the room written ahead.
      const std::size_t data = content_.find_last_not_of('\0') + 1;
      end = std::max<std::uint64_t>(offset + kSmallestBatch, (data + 7) / 8 * 8);
      content_.resize(std::max<std::uint64_t>(content_.size(), end), '\0');
    }
    while (end - offset < kSmallestBatch && end < content_.size()) end = next_batch(end);
    if (end - offset < kSmallestBatch) {
      lose(offset, content_.size() - offset, scan.problem);
      content_.resize(offset);
      return offset;
    }
    if (!header_whole)
      lose(offset, kBatchHeader, rest_is_zero(offset) ? "nothing but zeros: the end is missing" : scan.problem);
    mend_records(offset + kBatchHeader, end,
                 header_whole ? "a record fails its checksum" : "no record can be read here");
    put_batch_header(content_, offset, end, base_, header_whole ? scan.batch->synced : base_ + offset);
    out_.changed = true;
    return end;
  }

  void mend_records(std::uint64_t at, std::uint64_t end, const char* why) {
    std::uint64_t newest = at;
    while (end - at >= kRecordHeader) {
      newest = at;
      if (const auto record = whole_record(at, end)) {
        at += size_of(*record);
        ++out_.records;
        continue;
      }
      const std::uint64_t next = next_record(at, end);
      if (next == end && is_padding(at, end)) break;
      lose(at, next - at, why);
      put_mark(content_, at, next, base_);
      at = next;
    }
    if (end - at >= 8) {
      // More than padding, and too little for a mark: it takes the record before it along.
      lose(newest, end - newest, why);
      put_mark(content_, newest, end, base_);
      --out_.records;
      return;
    }
    std::fill(content_.begin() + static_cast<std::ptrdiff_t>(at), content_.begin() + static_cast<std::ptrdiff_t>(end),
              '\0');
  }

  bool is_padding(std::uint64_t at, std::uint64_t end) const {
    return end - at < 8 && content_.find_first_not_of('\0', at) >= end;
  }

  std::optional<RecordAt> whole_record(std::uint64_t at, std::uint64_t end) const {
    // Looked at first: in a large stretch of noise nearly nothing passes, and no checksum need be made.
    const auto type = static_cast<unsigned char>(content_[at + 8]);
    if (name_of_type(type).empty() || content_[at + 9] != 1) return std::nullopt;
    return read_record(std::string_view(content_).substr(0, end), base_, base_ + at);
  }

  // Where the next whole record begins, with room for a mark before it; or the end.
  std::uint64_t next_record(std::uint64_t at, std::uint64_t end) const {
    for (std::uint64_t next = at + kRecordHeader; next + kRecordHeader <= end; ++next) {
      if (whole_record(next, end)) return next;
    }
    return end;
  }

  std::string& content_;
  const std::uint64_t base_;
  const std::uint64_t synced_;
  const bool last_;
  SegmentRepair out_;
  std::vector<std::uint64_t> before_;  // Records before each loss.
};

}  // namespace

SegmentRepair repair_segment(std::string& content, std::uint64_t base, std::uint64_t synced, bool last) {
  return Repair(content, base, synced, last).run();
}

}  // namespace bide::engine::check
