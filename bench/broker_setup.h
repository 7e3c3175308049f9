// BrokerSetup: what a benchmark needs of a server besides the Broker: a prefix of its own, the server's figures
// without bide, where those are known, and how to clean up.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"

namespace bide::bench {

struct BrokerSetup {
  std::string url = {};  // With the prefix.
  int nodes = 1;         // Hosts of the URL that answer.
  // Messages of 200 bytes confirmed in a second, with the server's usual client alone. Null: nobody knows.
  std::function<Result<double>(std::uint64_t messages)> bare_enqueue_rate = nullptr;
  std::function<Result<std::vector<double>>(int messages)> bare_single_us = nullptr;
  // When the broker is closed. `queues` are those that were used.
  std::function<Status(const std::vector<std::string>& queues)> clean_up = nullptr;
};

// kUnsupported: there is nothing to measure behind such a URL.
Result<BrokerSetup> prepare_broker(std::string_view url);

}  // namespace bide::bench
