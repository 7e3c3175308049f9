#include "engine/journal/journal.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/journal/batch_reader.h"
#include "engine/journal/layout.h"
#include "engine/journal/record_reader.h"
#include "engine/journal/recovery.h"
#include "engine/journal/segment_writer.h"
#include "engine/journal/synced_mark.h"
#include "platform/fatal.h"

namespace bide::engine::journal {
namespace {

using platform::require;

// A commit of at least this size is not worth writing zeros ahead of.
constexpr std::size_t kSmallCommitBytes = 64 << 10;
// A batch buffer beyond this size is given back after use.
constexpr std::size_t kKeptBufferBytes = 6 << 20;
// reserve() speaks of records; this much more is for the headers of the batches that they will be written in.
constexpr std::size_t kReserveSlackBytes = 4 << 10;
constexpr std::size_t kMarkBatchBytes = padded(kBatchHeaderBytes + kRecordHeaderBytes);
// When the disk has no room for a new segment, the present one goes on for so long before the next try.
constexpr std::uint64_t kRotationRetryBytes = 1 << 20;

std::string parent_of(const std::string& directory) {
  const std::size_t slash = directory.find_last_of('/', directory.find_last_not_of('/'));
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : directory.substr(0, slash);
}

// Whether the record is among bytes in memory that begin at this address.
bool lies_in(const std::string& bytes, Address at, RecordRef ref) {
  return ref.bytes >= kRecordHeaderBytes && ref.address >= at && ref.address + ref.bytes <= at + bytes.size();
}

Result<RecordView> verified(std::string_view bytes, const Segment& segment, RecordRef ref) {
  const std::optional<RecordView> view = load_record(bytes, ref.address);
  if (view && view->at.bytes == ref.bytes) return *view;
  return damaged(segment.path, ref.address - segment.base, "a record fails its checksum");
}

}  // namespace

struct Journal::Impl {
  Impl(platform::Disk& disk_in, std::string directory_in, const JournalOptions& options_in)
      : disk(disk_in), directory(std::move(directory_in)), options(options_in), reader(disk_in), synced_mark(disk_in, directory) {}

  bool durable() const { return options.durability == Durability::kFsync; }

  Status open(Address from, const RecordVisitor& visitor);
  Status write_again();
  Status sync_everything();
  Status trim_again(std::size_t sealed);
  Result<std::unique_ptr<SegmentWriter>> create_segment(Address base, std::uint64_t room);
  void adopt(std::unique_ptr<SegmentWriter> writer);

  void begin(std::uint8_t type, std::uint8_t version);
  RecordRef finish();
  Status reserve(std::size_t bytes);
  Status write();
  Status rotate();
  Status write_batch();
  BatchHeader close_batch();
  Status sync();
  std::function<Status()> begin_commit();
  Status end_commit(const Status& outcome);
  Result<bool> mark();
  Result<bool> write_ahead();

  Result<RecordView> read(RecordRef ref);
  Result<RecordView> read_from(const Segment& segment, RecordRef ref);
  DeferredRead defer_read(RecordRef ref);
  const Segment* find(Address address) const;

  // Keeps the first error: after it, nothing may be written or confirmed.
  Status fail(const Error& error) {
    if (!failed) failed = error;
    return *failed;
  }
  // A file could not be opened for want of descriptors: nothing has been lost by that.
  Status fail_unless_transient(const Error& error) { return error.code == ErrorCode::kOverloaded ? error : fail(error); }
  // A segment holds at least one batch, however small it is wanted.
  Address rotation_point() const {
    return active->base() + std::max<std::uint64_t>(options.segment_bytes, kSegmentHeaderBytes + 1);
  }
  void drop_batch() {
    batch.clear();
    batch_records = 0;
    record_at = 0;
  }
  Address batch_end() const { return batch.empty() ? written : batch_at + batch.size(); }

  platform::Disk& disk;
  const std::string directory;
  const JournalOptions options;
  RecordReader reader;
  SyncedMark synced_mark;
  ReadBuffer scan_buffer;
  std::string scratch;  // A record that was read from memory.

  std::vector<Segment> segments;
  std::vector<std::uint64_t> sealed_bytes;  // Of the files of all segments but the last.
  std::unique_ptr<SegmentWriter> active;    // The last segment.
  std::vector<TornTail> torn_tails;
  std::optional<Error> failed;

  std::string batch;
  Encoder encoder{batch};
  Address batch_at = 0;
  std::uint32_t batch_records = 0;
  std::size_t record_at = 0;  // In the batch; 0 when no record is open.
  Address rotate_at = 0;      // A new segment is due when written has reached it.
  std::string recent;         // The batch written last, or being written by another thread.
  Address recent_at = 0;

  Address written = 0;
  Address synced = 0;
  Address on_disk = 0;         // Everything before it was really synced, whatever the durability.
  Address told = 0;            // The greatest synced point that a header on the disk tells.
  Address data_end = 0;        // After the last batch that holds more than a mark.
  Address reserved_end = 0;    // There is room up to here, as long as writing goes on in this order.
  bool small_commits = false;  // Since the last time zeros were written ahead.
  bool committing = false;     // Between begin_commit() and end_commit().
};

Status Journal::Impl::open(Address from, const RecordVisitor& visitor) {
  if (Status status = disk.make_directory(directory); !status) return status;
  Result<Recovered> recovered = recover(disk, directory, from, visitor, options.read_ahead);
  if (!recovered) return recovered.error();
  segments = std::move(recovered->segments);
  torn_tails = std::move(recovered->torn_tails);
  on_disk = told = recovered->synced_point;
  data_end = recovered->data_end;
  sealed_bytes = std::move(recovered->file_bytes);
  written = synced = recovered->next_base;
  // After the crash of a process, what it wrote and did not sync can be read but is not yet durable. It is about to be
  // built upon.
  if (durable()) {
    if (Status status = write_again(); !status) return status;
    if (Status status = sync_everything(); !status) return status;
  }
  if (Status status = trim_again(segments.size() - (recovered->last_is_active ? 1 : 0)); !status) return status;
  if (!recovered->last_is_active) {
    if (segments.empty() && options.durability != Durability::kNone) {
      if (Status status = disk.sync_directory(parent_of(directory)); !status) return status;
    }
    Result<std::unique_ptr<SegmentWriter>> created = create_segment(recovered->next_base, 0);
    if (!created) return created.error();
    adopt(std::move(*created));
    return {};
  }
  Result<std::unique_ptr<SegmentWriter>> opened = SegmentWriter::open(disk, segments.back(), sealed_bytes.back());
  if (!opened) return opened.error();
  sealed_bytes.pop_back();
  active = std::move(*opened);
  rotate_at = rotation_point();
  return {};
}

// The process before may have ended because a sync failed. Then the kernel still shows what was written, but calls it
// clean, and a sync alone would leave it out. So would it the size of the file, unless that changes for a moment.
Status Journal::Impl::write_again() {
  constexpr std::uint64_t kPieceBytes = 1 << 20;
  std::string bytes;
  for (const Segment& segment : segments) {
    if (segment.end <= on_disk) continue;
    Result<std::unique_ptr<platform::File>> file = disk.open(segment.path, platform::OpenMode::kReadWrite);
    if (!file) return file.error();
    const std::uint64_t end = segment.end - segment.base;
    for (std::uint64_t at = std::max(on_disk, segment.base) - segment.base; at < end; at += bytes.size()) {
      bytes.resize(std::min(kPieceBytes, end - at));
      Result<std::size_t> got = (*file)->read(at, bytes.data(), bytes.size());
      if (!got) return got.error();
      if (*got < bytes.size()) return damaged(segment.path, at + *got, "the file is shorter than it was a moment ago");
      if (Status status = (*file)->write(at, bytes); !status) return status;
    }
    Result<std::uint64_t> size = (*file)->size();
    if (!size) return size.error();
    if (Status status = (*file)->truncate(*size + kBatchAlignment); !status) return status;
    if (Status status = (*file)->truncate(*size); !status) return status;
  }
  return {};
}

Status Journal::Impl::sync_everything() {
  bool any = false;
  for (const Segment& segment : segments) {
    if (segment.end <= on_disk) continue;
    any = true;
    Result<std::unique_ptr<platform::File>> file = disk.open(segment.path, platform::OpenMode::kReadWrite);
    if (!file) return file.error();
    if (Status status = (*file)->sync(); !status) return status;
  }
  on_disk = written;
  return any ? disk.sync_directory(directory) : Status();
}

// The process before may have ended between a new segment and the trimming of the last; see rotate().
Status Journal::Impl::trim_again(std::size_t sealed) {
  for (std::size_t i = 0; i < sealed; ++i) {
    const std::uint64_t bytes = segments[i].end - segments[i].base;
    if (sealed_bytes[i] <= bytes) continue;
    Result<std::unique_ptr<platform::File>> file = disk.open(segments[i].path, platform::OpenMode::kReadWrite);
    if (!file) return file.error();
    if (Status status = (*file)->truncate(bytes); !status) return status;
    if (durable()) {
      if (Status status = (*file)->sync(); !status) return status;
    }
    sealed_bytes[i] = bytes;
  }
  return {};
}

Result<std::unique_ptr<SegmentWriter>> Journal::Impl::create_segment(Address base, std::uint64_t room) {
  // A file that was made and whose directory cannot be synced, for want of descriptors, would be the end.
  reader.close_files();
  return SegmentWriter::create(disk, directory, {kFormatVersion, base, on_disk}, room, durable());
}

void Journal::Impl::adopt(std::unique_ptr<SegmentWriter> writer) {
  active = std::move(writer);
  written = active->base() + kSegmentHeaderBytes;
  told = on_disk;
  if (durable()) on_disk = synced = written;
  if (reserved_end > active->base()) reserved_end += kSegmentHeaderBytes;
  segments.push_back({active->base(), written, active->path()});
  rotate_at = rotation_point();
}

void Journal::Impl::begin(std::uint8_t type, std::uint8_t version) {
  require(record_at == 0, "begin() before the last record was finished");
  if (batch.empty()) {
    batch_at = written;
    batch.resize(kBatchHeaderBytes);
  }
  record_at = batch.size();
  const char header[kRecordHeaderBytes] = {0, 0, 0, 0, 0, 0, 0, 0, static_cast<char>(type), static_cast<char>(version)};
  batch.append(header, sizeof header);
}

RecordRef Journal::Impl::finish() {
  require(record_at != 0, "finish() without begin()");
  const std::size_t bytes = batch.size() - record_at;
  require(padded(batch.size()) <= kMaxBatchBytes, "a batch of more than 4 GiB");
  const RecordRef ref{batch_at + record_at, static_cast<std::uint32_t>(bytes)};
  store_record_length(batch.data() + record_at, bytes);
  record_at = 0;
  ++batch_records;
  return ref;
}

Status Journal::Impl::reserve(std::size_t bytes) {
  if (failed) return *failed;
  const Address end = batch_end() + bytes + kReserveSlackBytes;
  if (end <= reserved_end) return {};
  if (Status status = active->take_room(end); !status) return status;
  reserved_end = end;
  return {};
}

Status Journal::Impl::write() {
  if (failed) return *failed;
  require(!committing, "write() during a commit");
  if (batch.empty()) return {};
  require(record_at == 0, "write() before the last record was finished");
  if (Status status = write_batch(); !status) return fail(status.error());
  return durable() ? Status() : rotate();
}

// Between batches only, so that a record's address never depends on whether a file can be made: when there is no space
// for a new segment, the present one just goes on.
Status Journal::Impl::rotate() {
  if (written < rotate_at || !batch.empty()) return {};
  // What was reserved moves along.
  const std::uint64_t room = reserved_end > written ? reserved_end - written : 0;
  Result<std::unique_ptr<SegmentWriter>> created = create_segment(written, room);
  if (!created) {
    const ErrorCode code = created.error().code;
    if (code != ErrorCode::kDiskFull && code != ErrorCode::kOverloaded) return fail(created.error());
    rotate_at = written + kRotationRetryBytes;
    return {};
  }
  if (Status status = active->trim(written); !status) return fail(status.error());
  // Should the zeros at its end come back after the segment behind it was deleted, they would pass for what was in that.
  if (durable()) {
    if (Status status = active->sync(); !status) return fail(status.error());
  }
  sealed_bytes.push_back(active->file_bytes());
  adopt(std::move(*created));
  return {};
}

Status Journal::Impl::write_batch() {
  const BatchHeader header = close_batch();
  seal_batch(recent.data(), header, recent_at);
  Status status = active->write(recent_at, recent);
  if (status) segments.back().end = written;
  if (recent.size() > kKeptBufferBytes) std::string().swap(recent);
  return status;
}

// The batch becomes the recent one, and what comes next goes behind it. It has yet to be sealed and written.
BatchHeader Journal::Impl::close_batch() {
  const bool only_mark = batch_records == 1 && batch[kBatchHeaderBytes + 8] == char{kMarkType};
  batch.resize(padded(batch.size()));
  const BatchHeader header{static_cast<std::uint32_t>(batch.size()), batch_records, 0, on_disk};
  written = batch_at + batch.size();
  told = on_disk;
  if (!only_mark) {
    data_end = written;
    small_commits = batch.size() < kSmallCommitBytes;
  }
  std::swap(batch, recent);
  recent_at = batch_at;
  drop_batch();
  return header;
}

Status Journal::Impl::sync() {
  if (failed) return *failed;
  require(!committing, "sync() during a commit");
  if (durable() && synced < written) {
    if (Status status = active->sync(); !status) return fail(status.error());
    on_disk = written;
  }
  synced = written;
  return rotate();
}

std::function<Status()> Journal::Impl::begin_commit() {
  require(!committing, "begin_commit() during a commit");
  require(record_at == 0, "begin_commit() before the last record was finished");
  committing = true;
  if (failed) return [error = *failed] { return Status(error); };
  std::function<Status()> write = [] { return Status(); };
  if (!batch.empty()) {
    const BatchHeader header = close_batch();
    active->expect(recent_at, recent.size());
    // The file alone, and the buffer, which nobody changes before end_commit().
    write = [this, header, at = recent_at] {
      seal_batch(recent.data(), header, at);
      return active->write_expected(at, recent);
    };
  }
  if (!durable() || synced == written) return write;
  return [this, write = std::move(write)] {
    Status status = write();
    return status ? active->sync() : status;
  };
}

Status Journal::Impl::end_commit(const Status& outcome) {
  require(committing, "end_commit() without begin_commit()");
  committing = false;
  if (!outcome) return fail(outcome.error());
  segments.back().end = written;
  if (recent.size() > kKeptBufferBytes) std::string().swap(recent);
  if (durable()) on_disk = written;
  synced = written;
  return rotate();
}

Result<bool> Journal::Impl::mark() {
  if (!durable() || !batch.empty() || on_disk < written || told >= data_end) return false;
  // The last of the disk belongs to jobs.
  const Address room = std::max(reserved_end, written) + kMarkBatchBytes;
  if (Status status = active->take_room(room); !status) {
    if (status.error().code == ErrorCode::kDiskFull) return false;
    return fail(status.error()).error();
  }
  reserved_end = room;
  begin(kMarkType, 1);
  finish();
  if (Status status = write(); !status) return status.error();
  if (Status status = sync(); !status) return status.error();
  if (Status status = synced_mark.write(data_end); !status) return fail(status.error()).error();
  return true;
}

Result<bool> Journal::Impl::write_ahead() {
  if (!durable() || !small_commits || !batch.empty() || written >= rotate_at) return false;
  const std::uint64_t left = active->file_end() - written;
  if (left >= options.prewrite_bytes / 4) return false;
  const Address end = std::min(written + std::min(options.prewrite_bytes, options.segment_bytes), rotate_at);
  if (end <= active->file_end()) return false;
  small_commits = false;
  if (Status status = active->take_room(end); !status) {
    if (status.error().code == ErrorCode::kDiskFull) return false;
    return fail(status.error()).error();
  }
  if (Status status = active->write_zeros(end); !status) return fail(status.error()).error();
  if (Status status = active->sync(); !status) return fail(status.error()).error();
  on_disk = synced = written;
  return true;
}

const Segment* Journal::Impl::find(Address address) const {
  const auto after = std::upper_bound(segments.begin(), segments.end(), address,
                                      [](Address wanted, const Segment& segment) { return wanted < segment.base; });
  if (after == segments.begin()) return nullptr;
  const Segment& segment = *std::prev(after);
  return address < segment.end ? &segment : nullptr;
}

Result<RecordView> Journal::Impl::read(RecordRef ref) {
  constexpr std::size_t kTypeAt = 8;  // Before it lie length and checksum.
  // Copied: the batch may move in memory while the record is being looked at.
  if (!batch.empty() && lies_in(batch, batch_at, ref)) {
    scratch.assign(batch, ref.address - batch_at + kTypeAt, ref.bytes - kTypeAt);
    return unsealed_record(scratch, ref);
  }
  if (lies_in(recent, recent_at, ref)) {
    scratch.assign(recent, ref.address - recent_at + kTypeAt, ref.bytes - kTypeAt);
    return unsealed_record(scratch, ref);
  }
  const Segment* segment = find(ref.address);
  if (!segment || ref.bytes < kRecordHeaderBytes || segment->end - ref.address < ref.bytes) {
    return Error{ErrorCode::kDamaged, directory + ": there is no record at address " + std::to_string(ref.address) +
                                          ": its segment is missing; `bide store check` says more, `bide store repair` keeps what can be read"};
  }
  Result<RecordView> found = read_from(*segment, ref);
  if (found) return found;
  reader.forget(*segment);
  return read_from(*segment, ref);
}

Result<RecordView> Journal::Impl::read_from(const Segment& segment, RecordRef ref) {
  Result<std::string_view> bytes = reader.read(segment, ref);
  if (!bytes) return bytes.error();
  return verified(*bytes, segment, ref);
}

DeferredRead Journal::Impl::defer_read(RecordRef ref) {
  if ((!batch.empty() && lies_in(batch, batch_at, ref)) || lies_in(recent, recent_at, ref)) return nullptr;
  const Segment* segment = find(ref.address);
  if (!segment || ref.bytes < kRecordHeaderBytes || segment->end - ref.address < ref.bytes) return nullptr;
  auto file = reader.shared_file(*segment);
  if (!file) return nullptr;
  return [file = *file, segment = *segment, ref](const RecordVisitor& show) -> Status {
    ReadBuffer buffer;
    buffer.grow(ref.bytes, 0);
    const Result<std::size_t> got = file->read(ref.address - segment.base, buffer.data(), ref.bytes);
    if (!got) return got.error();
    const Result<RecordView> view = verified({buffer.data(), *got}, segment, ref);
    return view ? show(*view) : view.error();
  };
}

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Journal::~Journal() {
  // A mark is a help to the next opening, not a promise: what was promised is synced already.
  if (impl_->failed || !impl_->active || impl_->committing) return;
  impl_->drop_batch();
  if (impl_->sync()) static_cast<void>(impl_->mark().has_value());
}

Result<std::unique_ptr<Journal>> Journal::open(platform::Disk& disk, const std::string& directory,
                                               const JournalOptions& options, Address from,
                                               const RecordVisitor& visitor) {
  auto impl = std::make_unique<Impl>(disk, directory, options);
  if (Status status = impl->open(from, visitor); !status) return status.error();
  return std::unique_ptr<Journal>(new Journal(std::move(impl)));
}

const std::vector<TornTail>& Journal::torn_tails() const { return impl_->torn_tails; }

Encoder& Journal::begin(std::uint8_t type, std::uint8_t version) {
  impl_->begin(type, version);
  return impl_->encoder;
}
RecordRef Journal::finish() { return impl_->finish(); }
bool Journal::batch_empty() const { return impl_->batch.empty(); }
std::size_t Journal::batch_bytes() const { return impl_->batch.size(); }

Status Journal::reserve(std::size_t bytes) { return impl_->reserve(bytes); }
Status Journal::write() { return impl_->write(); }
Status Journal::sync() { return impl_->sync(); }
std::function<Status()> Journal::begin_commit() { return impl_->begin_commit(); }
Status Journal::end_commit(const Status& outcome) { return impl_->end_commit(outcome); }

Status Journal::harden() {
  if (impl_->failed) return *impl_->failed;
  if (impl_->durable()) return impl_->sync();
  if (Status status = impl_->sync_everything(); !status) return impl_->fail_unless_transient(status.error());
  return {};
}

bool Journal::segment_full() const { return impl_->written >= impl_->rotate_at; }
Address Journal::end() const { return impl_->batch_end(); }
Address Journal::written() const { return impl_->written; }
Address Journal::synced() const { return impl_->synced; }

Result<RecordView> Journal::read(RecordRef ref) { return impl_->read(ref); }

DeferredRead Journal::defer_read(RecordRef ref) { return impl_->defer_read(ref); }
Journal::Place Journal::place_of(Address address) const {
  const Segment* segment = impl_->find(address);
  return segment == nullptr ? Place{} : Place{segment->path, address - segment->base};
}
const std::vector<Segment>& Journal::segments() const { return impl_->segments; }

Result<Address> Journal::scan(Address base, Address from, std::size_t max_bytes, const RecordVisitor& visitor,
                              Address& stopped_at) {
  stopped_at = from;
  const Segment* found = impl_->find(base);
  if (!found || found->base != base) {
    return Error{ErrorCode::kNotFound, impl_->directory + ": there is no segment " + segment_name(base)};
  }
  const Segment segment = *found;  // The visitor may append, and a new segment may begin.
  Result<platform::File*> file = impl_->reader.file(segment);
  if (!file) return file.error();
  const std::uint64_t start = std::max<std::uint64_t>(std::max(from, base) - base, kSegmentHeaderBytes);
  const std::size_t window = std::clamp<std::size_t>(max_bytes, 64 << 10, BatchReader::kWindowBytes);
  BatchReader batches(**file, base, start, segment.end - base, impl_->scan_buffer, window);
  while (true) {
    Result<BatchReader::Found> next = batches.next();
    stopped_at = batches.address();
    if (!next) return next.error();
    if (*next == BatchReader::Found::kInvalid) {
      return damaged(segment.path, batches.offset(), "a batch fails its checksum");
    }
    if (*next != BatchReader::Found::kBatch) return segment.end;
    if (batches.offset() - start >= max_bytes) return batches.address();
    if (Status status = visit_batch(batches.batch(), batches.header(), batches.address(), 0, visitor); !status) {
      return status.error();
    }
  }
}

void Journal::seal() { impl_->rotate_at = impl_->written; }

Result<std::string> Journal::forget(Address base) {
  Impl& impl = *impl_;
  if (impl.failed) return *impl.failed;
  const auto found = std::find_if(impl.segments.begin(), impl.segments.end(),
                                  [&](const Segment& segment) { return segment.base == base; });
  require(found != impl.segments.end() && base != impl.active->base(),
          "only a segment that is there and not being written to is removed");
  // What is deleted may have been durable for long, and its copies are not: a weaker durability is no reason to lose
  // old jobs.
  if (impl.options.durability == Durability::kOs) {
    if (Status status = impl.sync_everything(); !status) return impl.fail_unless_transient(status.error()).error();
    // The trimming of the one before it, too; see rotate().
    if (found != impl.segments.begin()) {
      Result<std::unique_ptr<platform::File>> file = impl.disk.open(std::prev(found)->path, platform::OpenMode::kReadWrite);
      if (!file) return impl.fail_unless_transient(file.error()).error();
      if (Status status = (*file)->sync(); !status) return impl.fail(status.error()).error();
    }
  }
  impl.reader.forget(*found);
  std::string path = found->path;
  impl.sealed_bytes.erase(impl.sealed_bytes.begin() + (found - impl.segments.begin()));
  impl.segments.erase(found);
  return path;
}

Result<bool> Journal::idle() {
  if (impl_->failed) return *impl_->failed;
  Result<bool> marked = impl_->mark();
  if (!marked) return marked;
  Result<bool> ahead = impl_->write_ahead();
  if (!ahead) return ahead;
  return *marked || *ahead;
}

std::uint64_t Journal::disk_bytes() const {
  std::uint64_t bytes = impl_->active->file_bytes();
  for (const std::uint64_t sealed : impl_->sealed_bytes) bytes += sealed;
  return bytes;
}

}  // namespace bide::engine::journal
