// SignalWatch: SIGTERM and SIGINT as calls on an ordinary thread, for as long as it lives. Several may live beside one
// another; each is told. What was installed for the signals before is put back with the last of them.

#pragma once

#include <semaphore.h>

#include <atomic>
#include <functional>
#include <thread>

namespace bide::worker {

class SignalWatch {
 public:
  // `told` runs on a thread of the watch, with 1 for the first signal, 2 for the second, and so on.
  explicit SignalWatch(std::function<void(int count)> told);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  std::function<void(int)> told_;
  sem_t* arrived_ = nullptr;  // Posted to by the signal handler; not ours to free.
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace bide::worker
