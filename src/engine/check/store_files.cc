#include "engine/check/store_files.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "engine/check/bytes.h"
#include "platform/disk.h"

namespace bide::engine::check {

std::optional<std::uint64_t> parse_address(std::string_view digits) {
  std::uint64_t value = 0;
  if (digits.size() != 16) return std::nullopt;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::string segment_path(std::uint64_t base) {
  char name[48];
  std::snprintf(name, sizeof name, "journal/%016" PRIx64 ".seg", base);
  return name;
}

namespace {

Status list_journal(platform::Disk& disk, const std::string& directory, StoreFiles& files) {
  constexpr std::string_view kSegmentSuffix = ".seg";
  const auto names = disk.list(directory + "/journal");
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const std::string_view digits = std::string_view(name).substr(0, name.find('.'));
    const auto base = name.ends_with(kSegmentSuffix) ? parse_address(digits) : std::nullopt;
    if (base) {
      files.segments.push_back({"journal/" + name, *base});
    } else if (name == "synced") {
      files.synced_mark = true;
    } else {
      files.others.push_back("journal/" + name);
    }
  }
  return {};
}

}  // namespace

Result<StoreFiles> list_store(platform::Disk& disk, const std::string& directory) {
  constexpr std::string_view kSnapshot = "snapshot-";
  // The reserve's content means nothing; the clock is that of one boot; the socket is where the owner can be reached.
  constexpr std::string_view kKnown[] = {platform::kLockFileName, "reserve", "clock", "socket", "ids"};
  StoreFiles files;
  const auto names = disk.list(directory);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (name == "journal") {
      if (Status listed = list_journal(disk, directory, files); !listed) return listed.error();
    } else if (name.starts_with(kSnapshot) && parse_address(std::string_view(name).substr(kSnapshot.size()))) {
      files.snapshots.push_back(name);
    } else if (name == kUnfinishedSnapshot) {
      files.unfinished_snapshot = true;
    } else if (name == kUnfinishedBackup) {
      files.unfinished_backup = true;
    } else if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
      files.others.push_back(name);
    }
  }
  // Their names are addresses of equal length.
  std::sort(files.snapshots.begin(), files.snapshots.end());
  std::sort(files.segments.begin(), files.segments.end(), [](const auto& a, const auto& b) { return a.base < b.base; });
  return files;
}

Result<std::string> read_whole_file(platform::Disk& disk, const std::string& path) {
  auto file = disk.open(path, platform::OpenMode::kReadOnly);
  if (!file) return file.error();
  const auto size = (*file)->size();
  if (!size) return size.error();
  std::string content(*size, '\0');
  const auto got = (*file)->read(0, content.data(), content.size());
  if (!got) return got.error();
  content.resize(*got);
  return content;
}

Status write_whole_file(platform::Disk& disk, const std::string& path, std::string_view content) {
  auto file = disk.open(path, platform::OpenMode::kCreate);
  if (!file) return file.error();
  if (Status written = (*file)->write(0, content); !written) return written;
  if (Status cut = (*file)->truncate(content.size()); !cut) return cut;
  return (*file)->sync();
}

std::uint64_t read_synced_mark(std::string_view content) {
  if (content.size() < 24 || !content.starts_with("BIDESYNC")) return 0;
  Bytes in(content.substr(8, 16));
  const std::uint64_t address = in.u64();
  return in.u64() == platform::checksum(content.substr(0, 16), 0) ? address : 0;
}

}  // namespace bide::engine::check
