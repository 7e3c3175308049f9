#include "engine/check/store_files.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>

#include "engine/check/bytes.h"
#include "engine/check/checksum.h"

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

Result<StoreFiles> list_store(platform::Disk& disk, const std::string& directory) {
  constexpr std::string_view kSnapshot = "snapshot-";
  constexpr std::string_view kSuffix = ".seg";
  StoreFiles files;
  const auto names = disk.list(directory);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (name.starts_with(kSnapshot) && parse_address(std::string_view(name).substr(kSnapshot.size()))) {
      files.snapshots.push_back(name);
    }
    if (name != "journal") continue;
    const auto inside = disk.list(directory + "/journal");
    if (!inside) return inside.error();
    for (const std::string& segment : *inside) {
      if (segment == "synced") files.synced_mark = true;
      if (!segment.ends_with(kSuffix)) continue;
      const auto base = parse_address(std::string_view(segment).substr(0, segment.size() - kSuffix.size()));
      if (base) files.segments.push_back({"journal/" + segment, *base});
    }
  }
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
  return in.u64() == xxh3(content.substr(0, 16), 0) ? address : 0;
}

}  // namespace bide::engine::check
