#include "metrics/counter.h"

namespace bide::metrics {

std::size_t this_shard() {
  static std::atomic<std::size_t> next = 0;
  thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kShards;
  return mine;
}

}  // namespace bide::metrics
