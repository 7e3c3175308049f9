// Journal: an append-only file of records in segments. It knows bytes, checksums and segments; what a record means is
// in records.h, what it does is in ../state.h. The format is drawn in docs/formats/journal.md.
//
// Records are collected into a batch, and a batch is written by one write. A batch is all or nothing: after a crash
// either every record in it is there or none. Not safe to share between threads.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"
#include "core/encoding.h"
#include "platform/disk.h"

namespace bide::engine::journal {

using core::Decoder;
using core::Encoder;
using core::load_little_endian;
using core::store_little_endian;

// The position of a record in the journal since it began, in bytes. Never used twice.
using Address = std::uint64_t;

enum class Durability : std::uint8_t { kFsync, kOs, kNone };  // kOs, kNone: sync() does nothing.

struct JournalOptions {
  std::uint64_t segment_bytes = 64ull << 20;
  // Small commits are written over zeros that were written before, which halves the time of a sync.
  std::uint64_t prewrite_bytes = 512ull << 10;
  Durability durability = Durability::kFsync;
  bool read_ahead = false;  // Opening reads and verifies in another thread, while the visitor sees what came before.
};

struct RecordRef {
  Address address = 0;
  std::uint32_t bytes = 0;  // On disk, with its header.
};

struct RecordView {
  std::uint8_t type = 0;
  std::uint8_t version = 0;
  std::string_view payload;
  RecordRef at;
};

struct Segment {
  Address base = 0;
  Address end = 0;  // One past the last byte of its batches.
  std::string path;
};

// What was cut off the end when the journal was opened: a batch that was being written when the power went.
struct TornTail {
  std::string path;
  std::uint64_t offset = 0;  // In the file.
  std::uint64_t bytes = 0;   // How many of them were not zero-filled room.
};

using RecordVisitor = std::function<Status(const RecordView&)>;

// Reads a record on any thread, once, and shows it to the visitor. The errors are those of Journal::read(), or the visitor's.
using DeferredRead = std::function<Status(const RecordVisitor&)>;

class Journal {
 public:
  // Opens the journal in a directory, making it when it is empty, and shows every record from `from` on to the visitor,
  // in order; marks, which are the journal's own, are not shown. Segments that lie wholly before `from` are not read,
  // and some of them may have been removed. Everything before `from` must have been synced when `from` was noted down.
  //
  // kDamaged: a batch before the synced point fails its checksum, or a segment is missing; the message names file and
  // offset, and nothing has been changed. kNewerVersion: written by a newer bide.
  static Result<std::unique_ptr<Journal>> open(platform::Disk& disk, const std::string& directory,
                                               const JournalOptions& options, Address from,
                                               const RecordVisitor& visitor);
  ~Journal();

  const std::vector<TornTail>& torn_tails() const;

  // The batch being collected. begin() gives the encoder that the payload is written to; finish() seals the record.
  // Its address is final: it can be applied before it is written.
  Encoder& begin(std::uint8_t type, std::uint8_t version);
  RecordRef finish();
  bool batch_empty() const;
  std::size_t batch_bytes() const;

  // Takes disk space for so many bytes of records more, beyond the batch as it is, so that write() will not find the
  // disk full; also when they are written in several batches, or into the next segment. kDiskFull otherwise; nothing
  // has changed then. Costs nothing when the space is there.
  Status reserve(std::size_t bytes);

  // Hands the batch to the operating system. An error here means that nothing may be confirmed any more: every later
  // call fails too.
  Status write();
  // Everything written is durable. Begins a new segment when the present one is full, unless a batch has been begun or
  // the disk has no room for it, or the process no descriptor. An error means that nothing may be confirmed any more.
  Status sync();

  // write() and sync() in two halves, for a caller who lets another thread wait for the disk. What begin_commit() gives
  // is called once, from any thread, and its answer is handed to end_commit(). In between records may be collected,
  // read and have room reserved; nothing else may be called.
  std::function<Status()> begin_commit();
  Status end_commit(const Status& outcome);

  // The same whatever the durability, before something else on disk relies on it. kOverloaded: not now.
  Status harden();

  // The next sync begins a new segment, unless a batch has been begun by then.
  bool segment_full() const;
  Address end() const;  // The address after the last record of the batch.
  Address written() const;
  Address synced() const;

  // One record, whether it is written or still in memory; what comes from the disk has its checksum verified.
  // Sequential reads are read ahead. What cannot be read is tried once more.
  // The view is valid until the next call of read or remove.
  // kDamaged, kIoError: this record is lost; others may not be. kOverloaded: later perhaps.
  Result<RecordView> read(RecordRef ref);
  // To read it later, on a thread that has time. The file stays open until then, also when its segment is forgotten. Null:
  // the record is still in memory, or its file cannot be opened: read() it.
  DeferredRead defer_read(RecordRef ref);
  // Where a record is, for people: its file, and the offset in it. No file: the segment is missing.
  struct Place {
    std::string path;
    std::uint64_t offset = 0;
  };
  Place place_of(Address address) const;

  // Oldest first; the last one is being written to.
  const std::vector<Segment>& segments() const;
  // Shows the records of a segment from `from` on (its base, or where the last scan said to go on), until about
  // `max_bytes` have been read; where to go on, or the segment's end. The visitor may append. Used by compaction.
  // `stopped_at` is set, if there is an error, to the batch in which it was found.
  Result<Address> scan(Address base, Address from, std::size_t max_bytes, const RecordVisitor& visitor,
                       Address& stopped_at);
  // The segment that is being written to takes no more after the next sync, so that it can be compacted too.
  void seal();
  // Does without a segment that is not being written to and lies wholly before the `from` of every opening to come. Its
  // file is left, with this path: deleting it takes a while, and any thread may do it. Should it come back with the power,
  // it is in nobody's way. kOverloaded: not now.
  Result<std::string> forget(Address base);

  // Work for a quiet moment: writes zeros ahead of small commits; marks what is synced, so that damage to the last
  // record can be told from a torn tail. Cheap when there is nothing to do; true when it did something.
  Result<bool> idle();

  std::uint64_t disk_bytes() const;  // Of all segments, zeros written ahead included, reserved room not.

 private:
  struct Impl;
  explicit Journal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bide::engine::journal
