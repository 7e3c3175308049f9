#include "platform/zone_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "platform/descriptor.h"
#include "platform/disk.h"

namespace bide::platform {
namespace {

// The largest there is has less than 4 KiB.
constexpr std::size_t kMostZoneBytes = 1 << 20;

std::string zone_folder() {
  const char* given = std::getenv("TZDIR");
  return given != nullptr && *given != '\0' ? given : "/usr/share/zoneinfo";
}

bool is_zone_name(std::string_view name) {
  const auto belongs = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
           c == '-' || c == '/';
  };
  return !name.empty() && name.size() <= 128 && name.front() != '/' && std::all_of(name.begin(), name.end(), belongs);
}

Error no_such_zone(const std::string& name) { return {ErrorCode::kNotFound, "there is no time zone " + name}; }

}  // namespace

Result<std::string> read_zone_file(const std::string& name) {
  if (!is_zone_name(name)) return no_such_zone(name);
  const std::string path = zone_folder() + "/" + name;
  const Descriptor file = Descriptor::open(path, O_RDONLY | O_NONBLOCK);
  if (!file.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) return no_such_zone(name);
    return system_error(errno, "open", path);
  }
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return system_error(errno, "look at", path);
  if (!S_ISREG(found.st_mode)) return no_such_zone(name);
  std::string bytes(std::min(static_cast<std::size_t>(found.st_size), kMostZoneBytes), '\0');
  std::size_t read = 0;
  while (read < bytes.size()) {
    const ssize_t more = ::read(file.get(), bytes.data() + read, bytes.size() - read);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return system_error(errno, "read", path);
    if (more == 0) break;
    read += static_cast<std::size_t>(more);
  }
  bytes.resize(read);
  return bytes;
}

std::string zone_file_version(const std::string& name) {
  struct stat found {};
  if (!is_zone_name(name) || ::stat((zone_folder() + "/" + name).c_str(), &found) != 0) return {};
  std::string version;
  for (const auto part : {static_cast<long long>(found.st_dev), static_cast<long long>(found.st_ino),
                          static_cast<long long>(found.st_size), static_cast<long long>(found.st_mtim.tv_sec),
                          static_cast<long long>(found.st_mtim.tv_nsec)}) {
    version += std::to_string(part) + " ";
  }
  return version;
}

std::vector<std::string> zone_file_names() {
  namespace fs = std::filesystem;
  const std::string folder = zone_folder();
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().lexically_relative(folder).string();
    // Two copies of everything, and files that are no zones.
    const bool is_copy = name == "posix" || name == "right";
    if (is_copy) at.disable_recursion_pending();
    const char first = name.empty() ? '\0' : name.front();
    if (!is_copy && first >= 'A' && first <= 'Z' && is_zone_name(name) && at->is_regular_file(error))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace bide::platform
