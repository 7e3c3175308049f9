// Mailbox: work for one thread from others, which wakes it up. Whoever posts may outlive the thread: what comes after
// the end is dropped.

#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "platform/local_socket.h"

namespace bide::brokers::shared {

class Mailbox {
 public:
  using Letter = std::function<void()>;

  void post(Letter letter) {
    {
      std::lock_guard lock(mutex_);
      if (closed_) return;
      letters_.push_back(std::move(letter));
      if (letters_.size() > 1) return;  // Whoever posted the first has woken it.
    }
    waker_.wake();
  }

  std::vector<Letter> take() {
    waker_.clear();
    std::lock_guard lock(mutex_);
    return std::exchange(letters_, {});
  }

  // Returns what nobody has taken.
  std::vector<Letter> close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    return std::exchange(letters_, {});
  }

  int descriptor() const { return waker_.descriptor(); }

 private:
  platform::Waker waker_;

  std::mutex mutex_;  // Guards everything below.
  std::vector<Letter> letters_;
  bool closed_ = false;
};

}  // namespace bide::brokers::shared
