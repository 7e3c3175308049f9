#include "engine/check/ids_check.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string_view>

#include "engine/check/bytes.h"
#include "engine/check/store_files.h"
#include "engine/check/writing.h"
#include "platform/disk.h"

namespace bide::engine::check {

namespace {

constexpr std::string_view kMagic = "BIDEDONE";
constexpr std::string_view kSuffix = ".ids";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeader = 64;
constexpr std::size_t kStep = 512;

struct Block {
  std::uint32_t version = 0;
  std::uint64_t bytes = 0;
  std::uint64_t from = 0;
  std::uint64_t covered = 0;
  std::uint64_t newest_ms = 0;
  std::uint64_t stepped_ms = 0;
  bool whole = false;
};

std::uint64_t seed(std::uint64_t file, std::uint64_t offset) { return (file << 40) ^ offset; }

Block read_block(std::string_view content, std::uint64_t file, std::uint64_t offset) {
  Block block;
  const std::string_view here = content.substr(offset);
  if (here.size() < kHeader || !here.starts_with(kMagic)) return block;
  Bytes in(here.substr(kMagic.size()));
  block.version = in.u32();
  block.bytes = in.u32();
  const std::uint64_t sum = in.u64();
  block.from = in.u64();
  block.covered = in.u64();
  block.newest_ms = in.u64();
  block.stepped_ms = in.u64();
  if (block.bytes < kHeader || block.bytes > here.size()) return block;
  block.whole = platform::checksum(here.substr(24, block.bytes - 24), seed(file, offset)) == sum;
  return block;
}

class Reader {
 public:
  explicit Reader(std::uint64_t from) : from_(from) {}

  Status read(const std::string& name, std::uint64_t number, std::string_view content) {
    facts_.files.push_back(name);
    facts_.last_file = number;
    for (std::uint64_t offset = 0; offset < content.size();) {
      const Block block = read_block(content, number, offset);
      if (block.version > kVersion) {
        return Error{ErrorCode::kNewerVersion, name + ": written by a newer bide (ids version " +
                                                   std::to_string(block.version) + "): use that version"};
      }
      if (!block.whole) {
        // A file without the block that it begins with never had another.
        const bool never_begun = content.size() <= kStep;
        if (!unreadable_.is_unreadable && !never_begun) unreadable_ = {name, offset, 0, true};
        offset += kStep;
        continue;
      }
      is_new_ = false;
      if (block.from < from_) take(name, block);
      offset += (block.bytes + kStep - 1) / kStep * kStep;
    }
    return {};
  }

  IdsFacts finish() {
    const bool nothing = is_new_ && unreadable_.is_unreadable;
    if (nothing || (facts_.any && facts_.covered < from_ && facts_.gaps.empty())) {
      add_gap(facts_.files.back(), facts_.covered);
    }
    return std::move(facts_);
  }

 private:
  void take(const std::string& name, const Block& block) {
    std::erase_if(facts_.gaps, [&](const IdsGap& gap) { return gap.begin >= block.from; });
    if (facts_.any ? block.from > facts_.covered : unreadable_.is_unreadable && block.from > 0) {
      add_gap(name, facts_.any ? facts_.covered : block.from - 1);
    }
    unreadable_ = {};
    facts_.any = true;
    facts_.covered = block.covered;
    facts_.newest_ms = block.newest_ms;
    facts_.stepped_ms = block.stepped_ms;
  }

  void add_gap(const std::string& name, std::uint64_t begin) {
    IdsGap gap = unreadable_;
    if (!gap.is_unreadable) gap.file = name;
    gap.begin = begin;
    facts_.gaps.push_back(std::move(gap));
  }

  const std::uint64_t from_;
  IdsFacts facts_;
  IdsGap unreadable_;
  bool is_new_ = true;
};

}  // namespace

Result<IdsFacts> read_ids(platform::Disk& disk, const std::string& directory, std::uint64_t from) {
  const auto there = disk.exists(directory + "/ids");
  if (!there) return there.error();
  if (!*there) return IdsFacts{};
  const auto names = disk.list(directory + "/ids");
  if (!names) return names.error();
  Reader reader(from);
  for (const std::string& name : *names) {
    if (!name.ends_with(kSuffix)) continue;
    const auto number = parse_address(std::string_view(name).substr(0, name.size() - kSuffix.size()));
    if (!number) continue;
    const auto content = read_whole_file(disk, directory + "/ids/" + name);
    if (!content) return content.error();
    if (Status read = reader.read("ids/" + name, *number, *content); !read) return read.error();
  }
  return reader.finish();
}

Status close_gaps(platform::Disk& disk, const std::string& directory, const IdsFacts& facts, std::uint64_t from) {
  if (facts.gaps.empty()) return {};
  if (!facts.any) {
    for (const std::string& file : facts.files) {
      if (Status removed = disk.remove(directory + "/" + file); !removed) return removed;
    }
    return disk.sync_directory(directory + "/ids");
  }
  const std::uint64_t number = facts.last_file + 1;
  std::string block(kMagic);
  put_u32(block, kVersion);
  put_u32(block, static_cast<std::uint32_t>(kHeader));
  std::string summed;
  std::uint64_t begin = facts.gaps.front().begin;
  for (const IdsGap& gap : facts.gaps) begin = std::min(begin, gap.begin);
  put_u64(summed, begin);
  put_u64(summed, std::max(facts.covered, from));
  put_u64(summed, facts.newest_ms);
  put_u64(summed, facts.stepped_ms);
  put_u64(summed, 0);  // No ids, no tokens.
  put_u64(block, platform::checksum(summed, seed(number, 0)));
  block += summed;
  block.resize(kStep, '\0');
  char name[48];
  std::snprintf(name, sizeof name, "/ids/%016" PRIx64 "%s", number, kSuffix.data());
  if (Status written = write_whole_file(disk, directory + name, block); !written) return written;
  return disk.sync_directory(directory + "/ids");
}

}  // namespace bide::engine::check
