// BackupThread: makes backups of a store that is open, one at a time and slowly enough that its work goes on.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "bide/backup.h"
#include "engine/backup.h"
#include "platform/task_thread.h"

namespace bide::engine {

// Safe to share between threads.
class BackupThread {
 public:
  explicit BackupThread(std::string directory) : directory_(std::move(directory)) {}
  ~BackupThread() { stop(); }

  // The next one will go there. kBusy: one is being made; otherwise see check_backup_target().
  Status claim(const std::string& target, Time now);
  // The claimed one is made; `finished` is called when nothing more of the plan is needed. An error: it is not made.
  void make(Result<BackupPlan> plan, std::function<void()> finished);
  BackupInfo info() const;

  // What is being made is given up.
  void stop();
  bool is_own_thread() { return thread_.is_own_thread(); }

 private:
  bool pause(std::chrono::microseconds took);
  void run(const BackupPlan& plan, const std::function<void()>& finished);
  void end(Result<BackupInfo> made);

  const std::string directory_;
  mutable std::mutex mutex_;  // Guards everything below but the thread.
  std::condition_variable changed_;
  BackupInfo info_;
  bool claimed_ = false;
  bool stopped_ = false;

  platform::TaskThread thread_;
};

}  // namespace bide::engine
