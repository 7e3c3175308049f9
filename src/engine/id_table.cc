#include "engine/id_table.h"

#include <algorithm>
#include <utility>

namespace bide::engine {

void IdTable::prefetch(const JobId& id) const {
  if (tables_.empty()) return;
  const std::uint64_t h = key_(id);
  const Table& table = tables_[table_of(h)];
  if (!table.tags.empty()) __builtin_prefetch(&table.tags[home(table, tag_of(h))]);
}

void IdTable::insert(const JobId& id, std::uint64_t block) {
  if (tables_.empty()) tables_.resize(std::size_t{1} << kTableBits);
  last_ = std::max(last_, block);
  const std::uint64_t h = key_(id);
  Table& table = tables_[table_of(h)];
  if ((std::uint64_t{table.used} + 1) * 5 > table.tags.size() * 4) rebuild(table);
  const Tag tag = tag_of(h);
  std::size_t i = home(table, tag);
  while (table.tags[i] != 0) i = after(table, i);
  table.tags[i] = tag;
  table.blocks[i] = static_cast<std::uint16_t>(block);
  ++table.used;
}

// Without the places of blocks that are gone; with as much room as the others need.
void IdTable::rebuild(Table& table) {
  const std::vector<Tag> tags = std::exchange(table.tags, {});
  const std::vector<std::uint16_t> blocks = std::exchange(table.blocks, {});
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tags.size(); ++i) kept += tags[i] != 0 && is_kept(blocks[i]) ? 1 : 0;
  std::size_t size = std::max<std::size_t>(tags.size(), 16);
  if (kept * 5 > size * 3) size += size / 4;
  if (kept * 3 < size) size = std::max<std::size_t>(16, kept * 2);
  places_ += size;
  places_ -= tags.size();
  table.tags.resize(size);
  table.blocks.resize(size);
  table.used = static_cast<std::uint32_t>(kept);
  for (std::size_t at = 0; at < tags.size(); ++at) {
    if (tags[at] == 0 || !is_kept(blocks[at])) continue;
    std::size_t i = home(table, tags[at]);
    while (table.tags[i] != 0) i = after(table, i);
    table.tags[i] = tags[at];
    table.blocks[i] = blocks[at];
  }
}

}  // namespace bide::engine
