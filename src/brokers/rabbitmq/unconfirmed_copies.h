// UnconfirmedCopies: what is published in the place of deliveries and not confirmed yet. A copy that the server does not
// take for a while is stalled: it does not count against credit and prefetch any more, so that what publishes nothing
// goes on. There is a limit to that, in copies and in bytes.
//
// Not safe to share between threads.

#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "bide/job.h"
#include "platform/fatal.h"

namespace bide::brokers::rabbitmq {

class UnconfirmedCopies {
 public:
  using Steady = std::chrono::steady_clock::time_point;
  static constexpr Milliseconds kStalled{200};
  static constexpr int kMostStalled = 10'000;
  static constexpr std::size_t kMostStalledBytes = 64 * 1024 * 1024;

  struct Copy {
    std::size_t bytes = 0;
    std::function<void(int by)> count_stalled;
    Steady stalled_from = {};
    bool stalled = false;
    bool over = false;
  };

  // `count_stalled` is told +1 when it stalls, and -1 when that is over.
  std::shared_ptr<Copy> begin(std::size_t bytes, Steady now, std::function<void(int by)> count_stalled) {
    recent_.push_back(
        std::make_shared<Copy>(Copy{bytes, std::move(count_stalled), now + kStalled, false, false}));
    return recent_.back();
  }

  // Confirmed, refused or given up.
  void end(Copy& copy) {
    platform::require(!copy.over, "a copy is answered once");
    copy.over = true;
    if (!std::exchange(copy.stalled, false)) return;
    platform::require(stalled_ > 0 && stalled_bytes_ >= copy.bytes, "a stalled copy is counted once");
    stalled_ -= 1;
    stalled_bytes_ -= copy.bytes;
    copy.count_stalled(-1);
  }

  void find_stalled(Steady now) {
    for (; !recent_.empty() && (recent_.front()->over || recent_.front()->stalled_from <= now); recent_.pop_front()) {
      Copy& copy = *recent_.front();
      if (copy.over || stalled_ >= kMostStalled || stalled_bytes_ > kMostStalledBytes) continue;
      copy.stalled = true;
      stalled_ += 1;
      stalled_bytes_ += copy.bytes;
      copy.count_stalled(1);
    }
  }
  // When find_stalled() may find something.
  Steady next() const { return recent_.empty() ? Steady::max() : recent_.front()->stalled_from; }

 private:
  std::deque<std::shared_ptr<Copy>> recent_;  // Those that may still be taken in time.
  int stalled_ = 0;
  std::size_t stalled_bytes_ = 0;
};

}  // namespace bide::brokers::rabbitmq
