#include "bench/resources.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <filesystem>
#include <fstream>

namespace bide::bench {

std::uint64_t resident_bytes() {
  ::malloc_trim(0);
  return resident_bytes_of("self");
}

std::uint64_t resident_bytes_of(const std::string& process) {
  std::ifstream status("/proc/" + process + "/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib * 1024;
  }
  return 0;
}

double cpu_seconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

std::uint64_t directory_bytes(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, ignored)) {
    struct stat info{};
    if (::stat(entry.path().c_str(), &info) == 0) bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace bide::bench
