#include "engine/check/check_store.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/check/ids_check.h"
#include "engine/check/job_census.h"
#include "engine/check/segment_scan.h"
#include "engine/check/snapshot_check.h"
#include "engine/check/store_files.h"
#include "platform/disk.h"

namespace bide::engine::check {

namespace {

constexpr std::size_t kMostFindings = 100;

bool is_zero(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

// A place that is not whole. Whether it is damage or a torn tail is known only when everything has been read.
struct Break {
  std::uint64_t address = 0;
  Finding finding;
};

class Checker {
 public:
  Checker(platform::Disk& disk, std::string directory) : disk_(disk), directory_(std::move(directory)) {}

  Result<StoreReport> run() {
    if (Status listed = list_files(); !listed) return listed.error();
    if (segments_.empty() && snapshots_.empty()) {
      return Error{ErrorCode::kNotFound, "there is no store in " + directory_};
    }
    if (Status read = check_snapshot(); !read) return read.error();
    if (Status read = check_segments(); !read) return read.error();
    if (Status read = check_ids(); !read) return read.error();
    judge_breaks();
    if (report_.jobs_complete) {
      if (Status read = check_needs(); !read) return read.error();
    }
    census_.fill(report_);
    check_sum();
    return std::move(report_);
  }

 private:
  using SegmentFile = StoreFiles::Segment;

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  Status list_files() {
    auto files = list_store(disk_, directory_);
    if (!files) return files.error();
    segments_ = std::move(files->segments);
    snapshots_ = std::move(files->snapshots);
    if (files->unfinished_snapshot) {
      find(Finding::Kind::kNote, kUnfinishedSnapshot, 0, "a snapshot that was not finished; it is not looked at");
    }
    if (files->unfinished_backup) {
      find(Finding::Kind::kDamage, kUnfinishedBackup, 0, "a backup that was not finished: something is missing");
    }
    for (const std::string& name : files->others) {
      const bool in_journal = name.starts_with("journal/");
      find(Finding::Kind::kNote, name, 0, in_journal ? "not a segment of the journal" : "not a file of the store");
    }
    if (!files->synced_mark) return {};
    // A mark that is not whole counts as none.
    const auto mark = read_whole_file(disk_, path(kSyncedMarkPath));
    if (!mark) return mark.error();
    synced_ = std::max(synced_, read_synced_mark(*mark));
    return {};
  }

  Status check_snapshot() {
    if (snapshots_.empty()) return {};
    const std::string& name = snapshots_.back();
    const auto content = read_whole_file(disk_, path(name));
    if (!content) return content.error();
    SnapshotFacts facts;
    if (const auto problem = read_snapshot(*content, census_, facts)) {
      if (problem->newer) return newer(name, problem->text);
      find(Finding::Kind::kDamage, name, problem->offset, problem->text);
      report_.jobs_complete = false;
      return {};
    }
    if (facts.address != parse_address(std::string_view(name).substr(name.find('-') + 1))) {
      find(Finding::Kind::kDamage, name, 0, "the name says another address than the file");
      report_.jobs_complete = false;
    }
    from_ = facts.address;
    synced_ = std::max(synced_, facts.address);
    report_.snapshot_address = facts.address;
    report_.snapshot_rows = facts.rows;
    return {};
  }

  Status check_ids() {
    const auto facts = read_ids(disk_, directory_, from_);
    if (!facts) return facts.error();
    for (const IdsGap& gap : facts->gaps) {
      find(gap.is_unreadable ? Finding::Kind::kDamage : Finding::Kind::kNote, gap.file, gap.offset,
           "ids of done jobs are missing: one of those jobs that is enqueued again will run again");
    }
    return {};
  }

  Status check_segments() {
    if (segments_.empty() || segments_.front().base > from_) {
      find(Finding::Kind::kDamage, segments_.empty() ? "" : segments_.front().path, 0,
           "the journal begins too late: a segment is missing");
      report_.jobs_complete = false;
    }
    end_ = segments_.empty() ? 0 : segments_.front().base;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const bool last = i + 1 == segments_.size();
      if (Status read = check_segment(segments_[i], last); !read) return read;
    }
    return {};
  }

  Status check_segment(const SegmentFile& segment, bool last) {
    const auto content = read_whole_file(disk_, path(segment.path));
    if (!content) return content.error();
    const auto header = read_segment_header(*content);
    if (header && header->version > kJournalVersion) {
      return newer(segment.path, "journal version " + std::to_string(header->version));
    }
    if (segment.base < end_) {
      find(Finding::Kind::kDamage, segment.path, 0, "the segment begins before the one before it ends");
      report_.jobs_complete = false;
    } else if (segment.base > end_ && segment.base > from_ && end_ >= from_) {
      break_at(end_, segment.path, 0, "something is missing before this segment");
    }
    ++report_.segments;
    end_ = segment.base;
    if (!header) {
      break_at(segment.base, segment.path, 0, "the header of the segment is not whole");
      if (!last) report_.jobs_complete = false;
    } else {
      if (header->base != segment.base) {
        find(Finding::Kind::kDamage, segment.path, 16, "the name says another address than the header");
        report_.jobs_complete = false;
      }
      synced_ = std::max(synced_, header->synced);
    }
    report_.journal_bytes += std::min(content->size(), kSegmentHeaderBytes);
    end_ += kSegmentHeaderBytes;
    scan(segment, *content);
    return {};
  }

  void scan(const SegmentFile& segment, std::string_view content) {
    std::uint64_t offset = kSegmentHeaderBytes;
    while (offset < content.size()) {
      const BatchScan batch = scan_batch(content, offset, segment.base, [&](const RecordAt& record) {
        visit(segment, record);
      });
      if (batch.batch) synced_ = std::max(synced_, batch.batch->synced);
      if (batch.batch && batch.problem.empty()) {
        ++report_.batches;
        report_.journal_bytes += batch.batch->bytes;
        offset += batch.batch->bytes;
        end_ = segment.base + offset;
        continue;
      }
      if (is_zero(content.substr(offset))) return;
      break_at(segment.base + offset, segment.path, batch.problem_offset, batch.problem);
      offset = next_batch(segment, content, offset);
      end_ = segment.base + offset;
    }
  }

  // Where the next header of a batch is, whole or not in the rest.
  static std::uint64_t next_batch(const SegmentFile& segment, std::string_view content, std::uint64_t offset) {
    for (offset += 8; offset < content.size(); offset += 8) {
      if (scan_batch(content, offset, segment.base, nullptr).batch) return offset;
    }
    return content.size();
  }

  void visit(const SegmentFile& segment, const RecordAt& record) {
    ++report_.records;
    const std::uint64_t offset = record.address - segment.base;
    RecordFacts facts;
    const auto problem = take_apart(record.type, record.version, record.payload, facts);
    const std::string_view name = name_of_type(record.type);
    ++report_.records_by_type[name.empty() ? "unknown" : std::string(name)];
    if (problem) {
      find(Finding::Kind::kDamage, segment.path, offset, *problem);
      report_.jobs_complete = false;
      return;
    }
    // After a break the records speak of jobs that are not known.
    if (record.address < from_ || !breaks_.empty() || !report_.jobs_complete) return;
    if (const auto misfit = census_.apply(facts, record.address)) {
      find(Finding::Kind::kDamage, segment.path, offset, *misfit);
      report_.jobs_complete = false;
    }
  }

  void break_at(std::uint64_t address, std::string file, std::uint64_t offset, std::string text) {
    breaks_.push_back({address, {Finding::Kind::kTornTail, std::move(file), offset, std::move(text)}});
  }

  // Only what nobody was told to be safe may be torn.
  void judge_breaks() {
    for (Break& each : breaks_) {
      if (each.address < synced_) {
        each.finding.kind = Finding::Kind::kDamage;
        report_.jobs_complete = false;
      }
      find(each.finding.kind, each.finding.file, each.finding.offset, each.finding.text);
    }
    if (breaks_.empty() && end_ < synced_) {
      find(Finding::Kind::kDamage, segments_.empty() ? "" : segments_.back().path, 0,
           "the end of the journal is missing: it was durable up to address " + std::to_string(synced_));
      report_.jobs_complete = false;
    }
  }

  // Every live job must have its body, and what was last said of it, where the index says.
  Status check_needs() {
    const std::vector<JobCensus::Need> needs = census_.needs();
    std::string content;
    const SegmentFile* open = nullptr;
    for (const JobCensus::Need& need : needs) {
      const auto after = std::upper_bound(segments_.begin(), segments_.end(), need.address,
                                          [](std::uint64_t address, const auto& each) { return address < each.base; });
      const SegmentFile* segment = after == segments_.begin() ? nullptr : &*std::prev(after);
      if (segment != nullptr && segment != open) {
        auto read = read_whole_file(disk_, path(segment->path));
        if (!read) return read.error();
        content = std::move(*read);
        open = segment;
      }
      if (segment == nullptr || !is_there(need, content, segment->base)) {
        find(Finding::Kind::kDamage, segment == nullptr ? "" : segment->path,
             segment == nullptr ? need.address : need.address - segment->base,
             std::string(need.body ? "the body" : "the last change") + " of job " + need.id.to_string() +
                 " should be here");
      }
    }
    return {};
  }

  static bool is_there(const JobCensus::Need& need, std::string_view content, std::uint64_t base) {
    const auto record = read_record(content, base, need.address);
    if (!record) return false;
    RecordFacts facts;
    if (take_apart(record->type, record->version, record->payload, facts)) return false;
    const RecordType type = facts.type == RecordType::kMoved ? facts.inner : facts.type;
    const RecordType wanted = need.body ? RecordType::kAccepted : RecordType::kChanged;
    return type == wanted && facts.ids.size() == 1 && facts.ids.front() == need.id;
  }

  void check_sum() {
    if (!report_.jobs_complete) return;
    const std::uint64_t gone =
        report_.done + report_.cancelled + report_.deleted + report_.purged + report_.forgotten;
    const std::uint64_t live = report_.waiting + report_.running + report_.dead;
    if (report_.accepted == gone + live) return;
    find(Finding::Kind::kDamage, "", 0,
         "jobs are missing: " + std::to_string(report_.accepted) + " accepted, " + std::to_string(gone) +
             " done or removed, " + std::to_string(live) + " live");
  }

  void find(Finding::Kind kind, std::string file, std::uint64_t offset, std::string text) {
    // Damage must always show, however long the list is.
    if (report_.findings.size() >= kMostFindings && report_.damaged()) return;
    report_.findings.push_back({kind, std::move(file), offset, std::move(text)});
  }

  Error newer(const std::string& name, const std::string& version) const {
    return {ErrorCode::kNewerVersion, path(name) + ": written by a newer bide (" + version +
                                          "): use that version"};
  }

  platform::Disk& disk_;
  const std::string directory_;
  std::vector<SegmentFile> segments_;
  std::vector<std::string> snapshots_;
  StoreReport report_;
  JobCensus census_;
  std::uint64_t from_ = 0;    // The journal is replayed from here.
  std::uint64_t synced_ = 0;  // Everything before was durable once.
  std::uint64_t end_ = 0;     // Of what has been read.
  std::vector<Break> breaks_;
};

}  // namespace

Result<StoreReport> check_store(platform::Disk& disk, const std::string& directory) {
  auto lock = platform::share_directory(directory);
  if (!lock) return lock.error();
  return Checker(disk, directory).run();
}

}  // namespace bide::engine::check
