// WorkDirectory: a new directory inside another one, gone with everything in it at the end.

#pragma once

#include <memory>
#include <string>

#include "bide/result.h"
#include "engine/engine.h"

namespace bide::bench {

class WorkDirectory {
 public:
  static Result<WorkDirectory> create(const std::string& inside);
  WorkDirectory(WorkDirectory&& other) noexcept;
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;
  WorkDirectory& operator=(WorkDirectory&&) = delete;
  ~WorkDirectory();

  const std::string& path() const { return path_; }
  // An empty directory in it; what was there under this name is removed.
  std::string fresh(const std::string& name) const;
  void drop(const std::string& name) const;

 private:
  explicit WorkDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The engine as users get it, in a directory.
inline Result<std::unique_ptr<engine::Engine>> open_engine(const std::string& directory) {
  engine::EngineOptions options;
  options.directory = directory;
  return engine::Engine::open(std::move(options));
}

}  // namespace bide::bench
