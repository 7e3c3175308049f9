// TemporaryDirectory: a folder of its own below the system's temporary one, gone with everything in it at the end.

#pragma once

#include <string>

namespace bide::support {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }  // Absolute, without a slash at the end.

 private:
  std::string path_;
};

}  // namespace bide::support
