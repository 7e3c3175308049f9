#include "engine/check/repair_store.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "engine/check/bytes.h"
#include "engine/check/ids_check.h"
#include "engine/check/job_census.h"
#include "engine/check/record_check.h"
#include "engine/check/segment_scan.h"
#include "engine/check/snapshot_check.h"
#include "engine/check/store_files.h"
#include "engine/check/writing.h"

namespace bide::engine::check {

namespace {

constexpr std::uint8_t kDeleted = 2;     // Cause of removed.
constexpr std::uint8_t kCauseFault = 1;  // Causes of changed.
constexpr std::uint8_t kCauseReturned = 2;
constexpr std::uint8_t kFlagDead = 4;
constexpr std::uint8_t kRejected = 1;
constexpr std::size_t kIdsInARecord = 1000;
constexpr std::uint64_t kLongestGap = 4ull << 30;

class Repairer {
 public:
  Repairer(platform::Disk& disk, std::string directory, std::int64_t now_ms)
      : disk_(disk), directory_(std::move(directory)), now_ms_(now_ms) {}

  Result<RepairReport> run() {
    auto files = list_store(disk_, directory_);
    if (!files) return files.error();
    files_ = std::move(*files);
    if (files_.segments.empty() && files_.snapshots.empty()) {
      return Error{ErrorCode::kNotFound, "there is no store in " + directory_};
    }
    for (Status (Repairer::*step)() : {&Repairer::mend_snapshot, &Repairer::find_synced, &Repairer::mend_segments,
                                       &Repairer::drop_misfits, &Repairer::settle_needs, &Repairer::forget_results,
                                       &Repairer::append_verdicts, &Repairer::forget_synced_mark,
                                       &Repairer::mend_ids}) {
      if (Status done = (this->*step)(); !done) return done.error();
    }
    if (Status synced = disk_.sync_directory(directory_ + "/journal"); !synced) return synced.error();
    if (Status synced = disk_.sync_directory(directory_); !synced) return synced.error();
    return std::move(report_);
  }

 private:
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  static Error beyond_repair(const std::string& what) {
    return {ErrorCode::kDamaged, "the store cannot be repaired: " + what + "; restore a backup"};
  }

  void lose(std::string file, Loss loss) {
    loss.file = std::move(file);
    report_.losses.push_back(std::move(loss));
  }

  Status mend_snapshot() {
    if (files_.snapshots.empty()) return {};
    const std::string name = files_.snapshots.back();
    auto content = read_whole_file(disk_, path(name));
    if (!content) return content.error();
    SnapshotFacts facts;
    const auto problem = read_snapshot(*content, census_, facts);
    if (problem && problem->newer) {
      return Error{ErrorCode::kNewerVersion,
                   path(name) + ": written by a newer bide (" + problem->text + "): use that version"};
    }
    if (problem) {
      census_ = JobCensus();
      facts = SnapshotFacts();
      auto repair = repair_snapshot(*content);
      if (!repair || read_snapshot(repair->content, census_, facts)) return without_snapshot(name, *problem);
      for (Loss& loss : repair->losses) lose(name, std::move(loss));
      if (Status written = write_whole_file(disk_, path(name), repair->content); !written) return written;
    }
    from_ = facts.address;
    return {};
  }

  // Everything is still in the journal when nothing of it has been deleted since it began.
  Status without_snapshot(const std::string& name, const SnapshotProblem& problem) {
    census_ = JobCensus();
    if (files_.segments.empty() || files_.segments.front().base != 0) {
      return beyond_repair("the beginning of " + name + " is damaged (" + problem.text +
                           "), and the journal that it stands for is gone");
    }
    lose(name,
         {.offset = problem.offset, .text = problem.text + "; it is left out, and the whole journal read instead"});
    for (const std::string& each : files_.snapshots) {
      if (Status removed = disk_.remove(path(each)); !removed) return removed;
    }
    files_.snapshots.clear();
    return {};
  }

  // Up to where somebody was told that it is safe.
  Status find_synced() {
    synced_ = from_;
    if (files_.synced_mark) {
      const auto mark = read_whole_file(disk_, path(kSyncedMarkPath));
      if (!mark) return mark.error();
      synced_ = std::max(synced_, read_synced_mark(*mark));
    }
    for (const StoreFiles::Segment& segment : files_.segments) {
      const auto content = read_whole_file(disk_, path(segment.path));
      if (!content) return content.error();
      const auto header = read_segment_header(*content);
      if (header && header->version > kJournalVersion) {
        return Error{ErrorCode::kNewerVersion, path(segment.path) + ": written by a newer bide (journal version " +
                                                   std::to_string(header->version) + "): use that version"};
      }
      if (header && header->base != segment.base && content->size() > kSegmentHeaderBytes) {
        return beyond_repair(segment.path + " is another segment, renamed: its header says " +
                             segment_path(header->base));
      }
      if (header) synced_ = std::max(synced_, header->synced);
      for (std::uint64_t at = kSegmentHeaderBytes; at + kBatchHeader <= content->size(); at += 8) {
        if (content->compare(at, 4, "BTCH") != 0) continue;
        if (const auto batch = scan_batch(*content, at, segment.base, nullptr).batch)
          synced_ = std::max(synced_, batch->synced);
      }
    }
    return {};
  }

  Status mend_segments() {
    if (files_.segments.empty() || files_.segments.front().base > from_) {
      if (Status made = make_first_segment(); !made) return made;
    }
    for (std::size_t i = 0; i < files_.segments.size(); ++i) {
      const std::optional<std::uint64_t> next =
          i + 1 < files_.segments.size() ? std::optional(files_.segments[i + 1].base) : std::nullopt;
      if (Status mended = mend_segment(files_.segments[i], next); !mended) return mended;
    }
    return {};
  }

  // Where the journal should begin there is nothing: an empty segment up to the first that is there.
  Status make_first_segment() {
    const std::uint64_t end = files_.segments.empty() ? from_ + kSegmentHeaderBytes : files_.segments.front().base;
    if (end - from_ < kSegmentHeaderBytes || end - from_ > kLongestGap) {
      return beyond_repair("the segment that holds address " + std::to_string(from_) + " is missing");
    }
    const StoreFiles::Segment first{segment_path(from_), from_};
    lose(first.path, {.bytes = end - from_, .text = "the file is missing"});
    if (Status written = write_whole_file(disk_, path(first.path), segment_header(from_)); !written) return written;
    files_.segments.insert(files_.segments.begin(), first);
    return {};
  }

  Status mend_segment(const StoreFiles::Segment& segment, std::optional<std::uint64_t> next) {
    auto content = read_whole_file(disk_, path(segment.path));
    if (!content) return content.error();
    bool changed = false;
    const auto header = read_segment_header(*content);
    if (!header || header->base != segment.base) {
      lose(segment.path, {.bytes = kSegmentHeaderBytes, .text = "the header of the segment; it is written anew"});
      content->resize(std::max(content->size(), kSegmentHeaderBytes), '\0');
      content->replace(0, kSegmentHeaderBytes, segment_header(segment.base));
      changed = true;
    }
    // After the snapshot one segment ends where the next begins; before it what nobody needs may be gone.
    std::optional<std::uint64_t> wanted;
    if (const std::uint64_t begins = next.value_or(0); begins > from_) wanted = begins - segment.base;
    if (!next && segment.base + content->size() < from_) wanted = from_ - segment.base;
    if (wanted && *wanted != content->size()) {
      if (*wanted > content->size() + kLongestGap) return beyond_repair("too much is missing behind " + segment.path);
      if (*wanted < content->size()) {
        lose(segment.path,
             {.offset = *wanted, .bytes = content->size() - *wanted, .text = "it overlaps the next segment"});
      }
      content->resize(*wanted, '\0');
      changed = true;
    }
    SegmentRepair repair = repair_segment(*content, segment.base, synced_, !next && !wanted);
    for (Loss& loss : repair.losses) lose(segment.path, std::move(loss));
    report_.records_kept += repair.records;
    end_ = segment.base + repair.end;
    if (!changed && !repair.changed) return {};
    return write_whole_file(disk_, path(segment.path), *content);
  }

  // Reads everything from the snapshot on as the engine would, and takes out what it would not accept.
  Status drop_misfits() {
    for (const StoreFiles::Segment& segment : files_.segments) {
      auto content = read_whole_file(disk_, path(segment.path));
      if (!content) return content.error();
      bool changed = false;
      std::uint64_t offset = kSegmentHeaderBytes;
      while (offset < content->size()) {
        std::vector<RecordAt> records;
        const BatchScan scan =
            scan_batch(*content, offset, segment.base, [&](const RecordAt& record) { records.push_back(record); });
        if (!scan.batch || !scan.problem.empty()) break;
        const std::uint64_t end = offset + scan.batch->bytes;
        bool batch_changed = false;
        for (const RecordAt& record : records) batch_changed |= !fits(*content, segment.base, record);
        if (batch_changed) put_batch_header(*content, offset, end, segment.base, scan.batch->synced);
        changed |= batch_changed;
        offset = end;
      }
      if (!changed) continue;
      if (Status written = write_whole_file(disk_, path(segment.path), *content); !written) return written;
    }
    return {};
  }

  // False: the record was changed. `record` lies in `content`.
  bool fits(std::string& content, std::uint64_t base, const RecordAt& record) {
    const std::uint64_t offset = record.address - base;
    const std::uint64_t end = offset + kRecordHeader + record.payload.size();
    RecordFacts facts;
    if (const auto problem = take_apart(record.type, record.version, record.payload, facts)) {
      lose(segment_path(base), {.offset = offset, .bytes = end - offset, .text = *problem});
      put_mark(content, offset, end, base);
      return false;
    }
    if (record.address < from_) return true;
    std::set<JobId> misfits;
    for (const JobId& id : facts.ids) {
      RecordFacts one = facts;
      one.ids = {id};
      if (!census_.apply(one, record.address)) continue;
      misfits.insert(id);
      if (facts.type == RecordType::kDone && census_.is_waiting(id)) finished_.insert(id);
    }
    if (misfits.empty()) return true;
    ++report_.records_dropped;
    const std::string rest = misfits.size() < facts.ids.size() ? without(record, misfits) : std::string();
    if (rest.empty()) {
      put_mark(content, offset, end, base);
      return false;
    }
    // Each id that goes leaves more room than a mark needs.
    const std::string kept = framed({record.type, rest, record.version}, record.address);
    content.replace(offset, kept.size(), kept);
    put_mark(content, offset + kept.size(), end, base);
    return false;
  }

  // The payload of granted, delivered or removed without some of its jobs.
  static std::string without(const RecordAt& record, const std::set<JobId>& misfits) {
    const bool delivered = record.type == static_cast<std::uint8_t>(RecordType::kDelivered);
    const bool granted = record.type == static_cast<std::uint8_t>(RecordType::kGranted);
    const bool has_tokens = granted || delivered;
    Bytes in(record.payload);
    if (!delivered) {
      const std::uint8_t flags = in.u8();
      in.u64();
      if (granted && (flags & 2) != 0) in.string();
      if (granted && record.version > 1) in.count();
    }
    std::string out(record.payload.substr(0, record.payload.size() - in.left()));
    std::string kept;
    std::uint64_t count = 0;
    for (std::uint64_t left = in.count(); left > 0; --left) {
      const JobId id = in.id();
      const std::uint64_t token = has_tokens ? in.count() : 0;
      if (misfits.contains(id)) continue;
      put_id(kept, id);
      if (has_tokens) put_count(kept, token);
      ++count;
    }
    put_count(out, count);
    return out + kept;
  }

  // A live job needs its body, and what was last said of it.
  Status settle_needs() {
    std::set<JobId> removed = finished_;
    const Status settled = for_missing(census_.needs(), [&](const JobCensus::Need& need) {
      if (!need.body) {
        report_.jobs_begun_anew.push_back(need.id);
      } else if (removed.insert(need.id).second) {
        report_.jobs_removed.push_back(need.id);
      }
    });
    if (!settled) return settled;
    std::erase_if(report_.jobs_begun_anew, [&](const JobId& id) { return removed.contains(id); });
    report_.jobs_finished.assign(finished_.begin(), finished_.end());
    return {};
  }

  // Done jobs may be forgotten at any time, so those whose record is lost are.
  Status forget_results() {
    const Status found = for_missing(census_.results(),
                                     [this](const JobCensus::Need& need) { report_.results_lost.push_back(need.id); });
    if (!found || report_.results_lost.empty() || files_.snapshots.empty()) return found;
    const std::string name = files_.snapshots.back();
    const auto content = read_whole_file(disk_, path(name));
    if (!content) return content.error();
    const auto repair = repair_snapshot(*content, {report_.results_lost.begin(), report_.results_lost.end()});
    if (!repair) return beyond_repair("the beginning of " + name + " is damaged");
    return write_whole_file(disk_, path(name), repair->content);
  }

  // Calls `missing` for what cannot be read where it should be.
  template <class F>
  Status for_missing(const std::vector<JobCensus::Need>& needs, F missing) {
    std::string content;
    const StoreFiles::Segment* open = nullptr;
    for (const JobCensus::Need& need : needs) {
      const auto after = std::upper_bound(files_.segments.begin(), files_.segments.end(), need.address,
                                          [](std::uint64_t address, const auto& each) { return address < each.base; });
      const StoreFiles::Segment* segment = after == files_.segments.begin() ? nullptr : &*std::prev(after);
      if (segment != nullptr && segment != open) {
        auto read = read_whole_file(disk_, path(segment->path));
        if (!read) return read.error();
        content = std::move(*read);
        open = segment;
      }
      if (segment == nullptr || !is_there(need, content, segment->base)) missing(need);
    }
    return {};
  }

  static bool is_there(const JobCensus::Need& need, std::string_view content, std::uint64_t base) {
    const auto record = read_record(content, base, need.address);
    RecordFacts facts;
    if (!record || take_apart(record->type, record->version, record->payload, facts)) return false;
    const RecordType type = facts.type == RecordType::kMoved ? facts.inner : facts.type;
    const bool right =
        need.body ? type == RecordType::kAccepted : type == RecordType::kChanged || type == RecordType::kDone;
    return right && facts.ids.size() == 1 && facts.ids.front() == need.id;
  }

  // What was found out is written at the end of the journal, as if it had just happened.
  Status append_verdicts() {
    std::vector<JobId> gone = report_.jobs_removed;
    gone.insert(gone.end(), report_.jobs_finished.begin(), report_.jobs_finished.end());
    std::vector<NewRecord> records;
    for (std::size_t from = 0; from < gone.size(); from += kIdsInARecord) {
      const std::size_t count = std::min(kIdsInARecord, gone.size() - from);
      NewRecord removed{static_cast<std::uint8_t>(RecordType::kRemoved), std::string(1, static_cast<char>(kDeleted))};
      put_u64(removed.payload, static_cast<std::uint64_t>(now_ms_));
      put_count(removed.payload, count);
      for (std::size_t i = from; i < from + count; ++i) put_id(removed.payload, gone[i]);
      records.push_back(std::move(removed));
    }
    for (const JobId& id : report_.jobs_begun_anew) records.push_back(begun_anew(id));
    if (records.empty()) return {};
    const StoreFiles::Segment& last = files_.segments.back();
    auto content = read_whole_file(disk_, path(last.path));
    if (!content) return content.error();
    const std::string batch = batch_of(records, end_, end_);
    const std::uint64_t offset = end_ - last.base;
    content->resize(std::max(content->size(), offset + batch.size()), '\0');
    content->replace(offset, batch.size(), batch);
    end_ += batch.size();
    return write_whole_file(disk_, path(last.path), *content);
  }

  NewRecord begun_anew(const JobId& id) const {
    const bool dead = census_.is_dead(id);
    NewRecord changed{static_cast<std::uint8_t>(RecordType::kChanged), {}};
    put_id(changed.payload, id);
    changed.payload += static_cast<char>(dead ? kCauseFault : kCauseReturned);
    changed.payload += static_cast<char>(dead ? kFlagDead : 0);
    put_u64(changed.payload, static_cast<std::uint64_t>(now_ms_));
    put_count(changed.payload, 0);  // Due at that time.
    put_count(changed.payload, 0);  // Attempts.
    if (dead) changed.payload += static_cast<char>(kRejected);
    return changed;
  }

  // It would call the journal cut short where its end is lost.
  Status forget_synced_mark() {
    if (!files_.synced_mark || synced_ <= end_) return {};
    lose(files_.segments.back().path, {.offset = end_ - files_.segments.back().base,
                                       .bytes = synced_ - end_,
                                       .text = "the end of the journal is missing"});
    return disk_.remove(path(kSyncedMarkPath));
  }

  Status mend_ids() {
    const auto facts = read_ids(disk_, directory_, from_);
    if (!facts) return facts.error();
    for (const IdsGap& gap : facts->gaps) {
      lose(gap.file, {.offset = gap.offset, .text = "ids of done jobs; one that is enqueued again will run again"});
    }
    return close_gaps(disk_, directory_, *facts, from_);
  }

  platform::Disk& disk_;
  const std::string directory_;
  const std::int64_t now_ms_;
  StoreFiles files_;
  JobCensus census_;
  RepairReport report_;
  std::set<JobId> finished_;
  std::uint64_t from_ = 0;    // The journal is read from here.
  std::uint64_t synced_ = 0;  // Everything before was durable once.
  std::uint64_t end_ = 0;     // Of the last whole batch.
};

}  // namespace

Result<RepairReport> repair_store(platform::Disk& disk, const std::string& directory, std::int64_t now_ms) {
  return Repairer(disk, directory, now_ms).run();
}

}  // namespace bide::engine::check
