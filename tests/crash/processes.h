// Processes: the children that a test starts and harms. Each is a crash_child of its own name (see crash_child.cc),
// writes the history of that name, and ends with the test at the latest; what is done to it is written down, too.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "crash/history.h"

namespace bide::crash {

// Which process holds the data directory of an embedded store. Nothing: none does, or the broker has no owner.
std::optional<pid_t> owner_of(const std::string& url);

class Processes {
 public:
  // `program` is the path of crash_child. Histories go to the directory.
  Processes(std::string program, std::string url, std::string history_directory);
  ~Processes();  // Kills what is left.
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void spawn(const std::string& name, const std::vector<std::string>& arguments);
  void kill(const std::string& name);  // -9. Dead when it returns.
  void pause(const std::string& name);
  void resume(const std::string& name);
  void terminate(const std::string& name);  // SIGTERM; does not wait.
  // Its exit code, or 128 and the signal that ended it. Nothing: it was still there when the time was over.
  std::optional<int> wait(const std::string& name, std::chrono::milliseconds at_most);
  // Those that ended by themselves since the last time, with how.
  std::map<std::string, int> reap();

  bool runs(const std::string& name) const { return running_.contains(name); }
  std::vector<std::string> names() const;
  std::optional<std::string> owner() const;  // Of the data directory.
  std::string role_of(const std::string& name) const;
  HistoryWriter& history() { return history_; }

 private:
  int gone(const std::string& name, int status);

  const std::string program_;
  const std::string url_;
  const std::string history_directory_;
  HistoryWriter history_;
  std::map<std::string, pid_t> running_;
};

}  // namespace bide::crash
