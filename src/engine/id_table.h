// IdTable: from the fingerprint of an id to the number of the block on disk that may hold it. Six bytes a place. A
// fingerprint proves nothing: two ids may share one, so whoever finds a block looks into it.
//
// Split into many small tables, so that growing one never takes long. Places of blocks that are gone stay until their
// table is laid out anew.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bide/job_id.h"
#include "platform/keyed_hash.h"

namespace bide::engine {

class IdTable {
 public:
  // Blocks are numbered in order; only the last 16 bits of a number are kept. No more than this may be there at once.
  static constexpr std::uint64_t kMostBlocks = 0xffff;

  explicit IdTable(const platform::HashKey& key = platform::HashKey::of_process()) : key_(key) {}

  void insert(const JobId& id, std::uint64_t block);
  // Starts loading the place where the id is or would be.
  void prefetch(const JobId& id) const;
  // Calls is_there(block) for each block that may hold the id, until it gives true.
  template <class F>
  bool any_block(const JobId& id, F is_there) const;

  // Blocks before this one are gone.
  void set_first(std::uint64_t block) { first_ = block; }
  std::uint64_t bytes() const { return places_ * (sizeof(Tag) + sizeof(std::uint16_t)) + tables_.size() * sizeof(Table); }

 private:
  using Tag = std::uint32_t;  // 0: the place is empty.
  static constexpr unsigned kTableBits = 10;

  struct Table {
    std::vector<Tag> tags;
    std::vector<std::uint16_t> blocks;
    std::uint32_t used = 0;
  };

  static Tag tag_of(std::uint64_t hash) {
    const Tag tag = static_cast<Tag>(hash);
    return tag == 0 ? 1 : tag;
  }
  static std::size_t table_of(std::uint64_t hash) { return static_cast<std::size_t>(hash >> (64 - kTableBits)); }
  static std::size_t home(const Table& table, Tag tag) {
    return static_cast<std::size_t>(std::uint64_t{tag} * table.tags.size() >> 32);
  }
  static std::size_t after(const Table& table, std::size_t at) { return at + 1 == table.tags.size() ? 0 : at + 1; }
  // How far behind the first block; the number that was kept may belong to a block that is gone.
  std::uint16_t behind_first(std::uint16_t block) const {
    return static_cast<std::uint16_t>(block - static_cast<std::uint16_t>(first_));
  }
  bool is_kept(std::uint16_t block) const { return first_ + behind_first(block) <= last_; }
  void rebuild(Table& table);

  const platform::HashKey key_;  // Nobody else has it, so nobody can choose ids that share a fingerprint.
  std::vector<Table> tables_;  // Empty until there is an id.
  std::uint64_t places_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
};

template <class F>
bool IdTable::any_block(const JobId& id, F is_there) const {
  if (tables_.empty()) return false;
  const std::uint64_t h = key_(id);
  const Table& table = tables_[table_of(h)];
  if (table.tags.empty()) return false;
  const Tag tag = tag_of(h);
  for (std::size_t i = home(table, tag); table.tags[i] != 0; i = after(table, i)) {
    if (table.tags[i] != tag || !is_kept(table.blocks[i])) continue;
    if (is_there(first_ + behind_first(table.blocks[i]))) return true;
  }
  return false;
}

}  // namespace bide::engine
