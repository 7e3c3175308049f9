// BenchGround: what a benchmark needs of a server besides the Broker: a corner where it disturbs nobody, the rate of
// the server without bide, where that is known, and somebody who cleans up.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"

namespace bide::brokers {

struct BenchGround {
  std::string url = {};  // Of the corner.
  int nodes = 1;         // Hosts of the URL that answer.
  // Messages of 200 bytes confirmed in a second, with the server's usual client alone. Null: nobody knows.
  std::function<Result<double>(std::uint64_t messages)> bare_enqueue_rate = nullptr;
  // When the broker is closed. `queues` are those that were used.
  std::function<Status(const std::vector<std::string>& queues)> clean_up = nullptr;
};

// kUnsupported: there is nothing to measure behind such a URL.
Result<BenchGround> prepare_bench(std::string_view url);

}  // namespace bide::brokers
