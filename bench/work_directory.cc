#include "bench/work_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace bide::bench {

Result<WorkDirectory> WorkDirectory::create(const std::string& inside) {
  std::string path = (inside.empty() ? std::string(".") : inside) + "/bide-bench-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return Error{ErrorCode::kCannotCreate, "cannot make a directory in " + (inside.empty() ? "." : inside) + ": " +
                                               std::strerror(errno)};
  }
  return WorkDirectory(std::move(path));
}

WorkDirectory::WorkDirectory(WorkDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}

WorkDirectory::~WorkDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string WorkDirectory::fresh(const std::string& name) const {
  drop(name);
  std::error_code ignored;
  std::filesystem::create_directory(path_ + "/" + name, ignored);
  return path_ + "/" + name;
}

void WorkDirectory::drop(const std::string& name) const {
  std::error_code ignored;
  std::filesystem::remove_all(path_ + "/" + name, ignored);
}

}  // namespace bide::bench
