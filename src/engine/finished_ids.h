// FinishedIds: which jobs are done, for a stated time, long after the jobs and their results are forgotten. So an enqueue
// with the same id, or a settle with the same token, that comes again does nothing a second time.
//
// Collected in memory, written in blocks to files of their own, which are dropped whole when they are too old. Memory
// holds a fingerprint of each id and a bit for each token; an id is looked for in its block before it is called known.
//
// The journal holds what no block has yet: a block is written only when everything in it is durable there, and the
// journal does without something (by a snapshot) only when that is durable in a block.
//
// See docs/decisions/0011 and docs/formats/ids.md.

#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "engine/id_block.h"
#include "engine/id_table.h"
#include "engine/options.h"
#include "engine/settled_tokens.h"
#include "platform/disk.h"

namespace bide::engine {

class FinishedIds {
 public:
  struct Use {
    std::uint64_t ids = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t disk_bytes = 0;
    // Before their time, because memory_bytes was reached.
    std::uint64_t ids_forgotten_early = 0;
    std::uint64_t tokens_forgotten_early = 0;
  };

  // `retention` 0: nothing is remembered. `memory_bytes`: the oldest are forgotten before it takes more.
  FinishedIds(platform::Disk& disk, const std::string& store, Milliseconds retention, std::uint64_t memory_bytes);

  // Reads the files. The journal will be replayed from `from`, where the snapshot was taken. What cannot be read is left
  // out; see damage(). kNewerVersion, kIoError, kOverloaded.
  Status open(journal::Address from);
  // The store is new, or a block holds what was known before the snapshot. Otherwise it is of a bide that remembered no ids.
  bool is_anchored() const { return is_anchored_; }
  // The journal has been replayed, and what finished behind covered() has been added again.
  void start(std::int64_t now_ms);
  // Jobs that finished before this address of the journal are in blocks.
  journal::Address covered() const { return covered_; }

  // A job is done. `end` is that of the journal, behind the record that says so. Nil: nobody has chosen the id, so
  // it cannot be given again, and only the token is kept; 0: that is not known.
  void add(const JobId& id, std::uint64_t token, std::int64_t finished_ms, journal::Address end);
  void prefetch(const JobId& id) const { table_.prefetch(id); }
  // Whether a job with this id is known to be done. An error: it may be, and its block cannot be read.
  Result<bool> contains(const JobId& id);
  bool was_settled(std::uint64_t token) const;

  // The wall clock was stepped: ages do not change by that.
  void step_clock(std::int64_t by_ms) { stepped_ms_ += by_ms; }
  // The journal will be replayed from here at the next opening.
  void set_snapshot(journal::Address at) { snapshot_ = at; }
  // Drops what is too old, or too much.
  void forget_old(std::int64_t now_ms);
  std::vector<std::string> take_obsolete_files() { return std::exchange(obsolete_files_, {}); }

  // What has been added is to be written, even if it is little.
  void close_block(journal::Address end);
  // Writes blocks of which everything is durable in the journal, which is so up to `synced`.
  // Unless `all`, nothing before a job has finished since start().
  Status write(journal::Address synced, bool all = false);
  bool has_unwritten() const { return !closed_.empty(); }
  // Everything written survives power loss.
  Status sync();
  std::uint64_t unsynced_bytes() const { return unsynced_bytes_; }

  // The files and how much has been written to them; only the last one grows.
  std::vector<std::pair<std::string, std::uint64_t>> files() const;

  Use use() const;
  // Some were forgotten early, and would still be known otherwise.
  bool is_short() const { return latest_ < short_until_; }
  // What opening could not read, and what it means.
  const std::vector<Damage>& damage() const { return damage_; }

 private:
  // A block that is not written yet.
  struct Unwritten {
    std::vector<JobId> ids;
    TokenGroups tokens;
    std::uint64_t settled = 0;
    std::int64_t oldest = 0;  // As all times here: without the steps of the wall clock.
    std::int64_t newest = 0;
    std::int64_t stepped = 0;  // The steps until `end`.
    journal::Address end = 0;
  };
  struct Block {
    std::uint64_t file = 0;
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
  };
  struct File {
    std::uint64_t number = 0;
    std::uint64_t end_block = 0;  // After its last.
    std::uint64_t bytes = 0;
    std::uint64_t ids = 0;
    journal::Address from = std::numeric_limits<journal::Address>::max();  // Of its first block.
    std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
    std::int64_t newest = std::numeric_limits<std::int64_t>::min();
    bool is_forgotten = false;  // Nothing of it is known any more. It is removed when a later one has a block before the snapshot.
  };

  // Between two blocks that were read: what the journal said there is in neither.
  struct Gap {
    journal::Address begin = 0;
    std::int64_t since = 0;  // The time of the block before it.
    std::uint64_t file = 0;
    std::uint64_t offset = 0;
  };

  std::string path_of(std::uint64_t file) const { return directory_ + "/" + id_file_name(file); }
  // The number of the block that is written next, and of the one that is being collected.
  std::uint64_t next_block() const { return first_block_ + blocks_.size(); }
  std::uint64_t open_block() const { return next_block() + closed_.size(); }
  Status read_file(std::uint64_t number, journal::Address from);
  void take(const IdBlockHeader& header, std::string_view block, File& file, std::uint64_t offset);
  void look_for_gap(const IdBlockHeader& header, std::uint64_t file);
  Status write_block(const Unwritten& block);
  Status begin_file(const Unwritten& block);
  Status write_again();
  // As the block in cached_block_.
  Status look_into(std::uint64_t block, const JobId& wanted);
  Result<bool> is_in_block(std::uint64_t block, const JobId& id);
  void forget(File& file);
  bool has_later_anchor() const;
  void remove_oldest_file();
  void report_gap(const Gap& gap);

  platform::Disk& disk_;
  const std::string store_;
  const std::string directory_;
  const std::int64_t retention_ms_;
  const std::uint64_t most_ids_;
  const std::uint64_t most_token_bytes_;
  const std::size_t ids_in_a_block_;

  IdTable table_;
  SettledTokens tokens_;
  std::deque<Block> blocks_;
  std::uint64_t first_block_ = 0;
  std::deque<File> files_;  // Oldest first.
  std::deque<Unwritten> closed_;
  Unwritten open_;
  std::uint64_t ids_ = 0;
  std::uint64_t ids_forgotten_early_ = 0;
  std::int64_t short_until_ = std::numeric_limits<std::int64_t>::min();
  std::uint64_t tokens_forgotten_early_ = 0;
  std::int64_t stepped_ms_ = 0;
  std::int64_t latest_ = 0;  // Of times; without the steps.
  journal::Address covered_ = 0;
  std::int64_t covered_stepped_ms_ = 0;  // The steps until there.
  journal::Address snapshot_ = 0;
  bool is_new_ = true;  // No block was read.
  bool is_anchored_ = false;
  bool is_started_ = false;
  bool has_added_ = false;  // Since start().

  std::unique_ptr<platform::File> file_;  // The last of files_, while it is written to.
  std::uint64_t last_file_ = 0;           // A number is not used twice.
  bool directory_there_ = false;
  std::uint64_t unsynced_bytes_ = 0;
  std::vector<Block> to_write_again_;  // That an earlier process wrote behind the snapshot.
  std::vector<std::string> obsolete_files_;

  // The block looked into last, and where.
  std::unique_ptr<platform::File> looked_into_;
  std::uint64_t looked_into_number_ = 0;
  static constexpr std::uint64_t kNoBlock = ~0ull;
  std::uint64_t cached_ = kNoBlock;
  std::string cached_block_;
  std::size_t cached_at_ = 0;

  std::vector<Gap> gaps_;
  std::optional<std::int64_t> last_read_;  // The time of the last whole block.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> unreadable_;  // File and offset, since the last whole block.
  std::vector<Damage> damage_;
};

}  // namespace bide::engine
