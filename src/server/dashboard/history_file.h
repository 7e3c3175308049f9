// HistoryFile: keeps a JobHistory over a restart, in a file that is replaced every few minutes and at the end. What happened since
// the last time is lost when the process is killed: these are counts to look at, and no job depends on them.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "metrics/job_history.h"
#include "platform/disk.h"
#include "platform/timer_thread.h"

namespace bide::server {

struct HistoryFileOptions {
  std::string path = {};
  std::chrono::milliseconds every{300'000};
  std::function<void(std::string_view)> on_problem = {};  // One line.
  platform::Disk* disk = nullptr;                         // Null: the real one.
};

class HistoryFile {
 public:
  // Reads what is there. The history must outlive it.
  HistoryFile(metrics::JobHistory& history, HistoryFileOptions options);
  ~HistoryFile();  // Writes it.
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;

 private:
  Status read();
  Status write();
  void report(const Status& status) const;

  metrics::JobHistory& history_;
  const HistoryFileOptions options_;
  platform::Disk& disk_;
  bool read_yet_ = false;
  std::unique_ptr<platform::TimerThread> timer_;
};

}  // namespace bide::server
