#include "engine/backup_thread.h"

#include <algorithm>
#include <utility>

namespace bide::engine {

namespace {

// After each piece disk and processor are left to the work for so many times as long as the piece took ...
constexpr int kRests = 7;
// ... which is not needed any longer than this.
constexpr std::chrono::milliseconds kLongestRest{500};

Time wall_time() { return std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now()); }

}  // namespace

Status BackupThread::claim(const std::string& target, Time now) {
  if (Status checked = check_backup_target(directory_, target); !checked) return checked;
  std::lock_guard lock(mutex_);
  if (stopped_) return Error{ErrorCode::kUnavailable, "the store is closed"};
  if (claimed_) return Error{ErrorCode::kBusy, "a backup to " + info_.target + " is being made"};
  claimed_ = true;
  info_ = {.state = BackupState::kCopying, .target = target, .started = now};
  return {};
}

void BackupThread::make(Result<BackupPlan> plan, std::function<void()> finished) {
  if (!plan) return end(plan.error());
  thread_.run([this, plan = std::move(*plan), finished = std::move(finished)] { run(plan, finished); });
}

void BackupThread::run(const BackupPlan& plan, const std::function<void()>& finished) {
  bool copied = false;
  const auto let_go = [&] {
    if (!std::exchange(copied, true)) finished();
  };
  const BackupHooks hooks{.progress =
                              [&](const BackupInfo& info) {
                                if (info.state != BackupState::kCopying) let_go();
                                std::lock_guard lock(mutex_);
                                info_ = info;
                              },
                          .pause = [this](std::chrono::microseconds took) { return pause(took); }};
  BackupInfo begun = info();
  Result<BackupInfo> made = write_backup(directory_, plan, std::move(begun), hooks);
  let_go();
  end(std::move(made));
}

void BackupThread::end(Result<BackupInfo> made) {
  std::lock_guard lock(mutex_);
  if (made) {
    info_ = std::move(*made);
  } else {
    info_.state = BackupState::kFailed;
    info_.error = made.error().message;
    info_.error_code = made.error().code;
  }
  info_.finished = wall_time();
  claimed_ = false;
}

BackupInfo BackupThread::info() const {
  std::lock_guard lock(mutex_);
  return info_;
}

bool BackupThread::pause(std::chrono::microseconds took) {
  std::unique_lock lock(mutex_);
  const auto rest = std::min<std::chrono::microseconds>(took * kRests, kLongestRest);
  changed_.wait_for(lock, rest, [this] { return stopped_; });
  return !stopped_;
}

void BackupThread::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.stop();
}

}  // namespace bide::engine
