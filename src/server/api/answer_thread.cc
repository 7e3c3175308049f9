#include "server/api/answer_thread.h"

#include <utility>

namespace bide::server {

AnswerThread::~AnswerThread() { stop(); }

void AnswerThread::run(std::function<void()> make) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      waiting_.push_back(std::move(make));
      if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
      changed_.notify_one();
      return;
    }
  }
  make();
}

void AnswerThread::stop() {
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    thread.swap(thread_);
  }
  changed_.notify_one();
  if (thread.joinable()) thread.join();
}

void AnswerThread::work() {
  for (std::unique_lock lock(mutex_);;) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::function<void()> make = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    make();
    make = nullptr;  // What it holds goes without the lock.
    lock.lock();
  }
}

}  // namespace bide::server
