// wait: the blocking face of the asynchronous calls of Broker and Inspector.
//
//   auto results = bide::wait<std::vector<Result<Enqueued>>>(
//       [&](auto done) { broker.enqueue({job}, std::move(done)); });

#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "bide/broker.h"

namespace bide {

// Never call it from a completion or a sink: those run on the thread that it would wait for.
template <class T, class Start>
Result<T> wait(Start&& start) {
  struct Slot {
    std::mutex mutex;
    std::condition_variable arrived;
    std::optional<Result<T>> result;
  };
  Slot slot;
  // A completion runs exactly once, so the slot outlives it; notifying under the lock keeps it alive until the end.
  std::forward<Start>(start)(Completion<T>([&slot](Result<T> result) {
    std::lock_guard lock(slot.mutex);
    slot.result.emplace(std::move(result));
    slot.arrived.notify_one();
  }));
  std::unique_lock lock(slot.mutex);
  slot.arrived.wait(lock, [&slot] { return slot.result.has_value(); });
  return std::move(*slot.result);
}

}  // namespace bide
