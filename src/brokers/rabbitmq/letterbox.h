// Letterbox: work for one thread from others, which wakes it up. Whoever posts may outlive the thread.

#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

class Letterbox {
 public:
  using Letter = std::function<void()>;

  // False when it is closed: the letter was not taken.
  bool post(Letter letter) {
    {
      std::lock_guard lock(mutex_);
      if (closed_) return false;
      letters_.push_back(std::move(letter));
      if (letters_.size() > 1) return true;  // Whoever posted the first has woken it.
    }
    waker_.wake();
    return true;
  }

  std::vector<Letter> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(letters_, {});
  }

  // Returns what nobody has taken.
  std::vector<Letter> close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    return std::exchange(letters_, {});
  }

  // Of the thread that takes: after waiting for the descriptor.
  void woken() { waker_.clear(); }
  int descriptor() const { return waker_.descriptor(); }

 private:
  platform::Waker waker_;

  std::mutex mutex_;  // Guards everything below.
  std::vector<Letter> letters_;
  bool closed_ = false;
};

}  // namespace bide::brokers::rabbitmq
