#include "platform/task_thread.h"

#include <utility>

namespace bide::platform {

TaskThread::~TaskThread() { stop(); }

void TaskThread::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      waiting_.push_back(std::move(task));
      if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
      changed_.notify_all();
      return;
    }
  }
  task();
}

void TaskThread::stop() {
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    thread.swap(thread_);
  }
  changed_.notify_all();
  if (thread.joinable()) thread.join();
}

void TaskThread::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !is_busy_; });
}

bool TaskThread::is_own_thread() {
  const std::lock_guard lock(mutex_);
  return thread_.get_id() == std::this_thread::get_id();
}

void TaskThread::work() {
  for (std::unique_lock lock(mutex_);;) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::function<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    is_busy_ = true;
    lock.unlock();
    task();
    task = nullptr;  // What it holds goes without the lock.
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace bide::platform
