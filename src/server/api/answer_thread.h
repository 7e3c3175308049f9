// AnswerThread: makes large answers one after the other, so that the broker's thread need not, on which all others wait
// for theirs. The thread is started with the first.

#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace bide::server {

// Safe to share between threads.
class AnswerThread {
 public:
  AnswerThread() = default;
  ~AnswerThread();
  AnswerThread(const AnswerThread&) = delete;
  AnswerThread& operator=(const AnswerThread&) = delete;

  // Once it is stopped: at once, on the caller's own thread.
  void run(std::function<void()> make);
  // When everything that was given has been made. Must not be called by what it runs.
  void stop();

 private:
  void work();

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace bide::server
