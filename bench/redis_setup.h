// What `bide bench broker` needs of a Redis server.

#pragma once

#include <string_view>

#include "bench/broker_setup.h"
#include "bide/result.h"

namespace bide::bench {

// `rest` is what is behind the colon of the scheme. The bare figures are of a script that keeps 200 bytes and puts their
// name into a sorted set, which is the least that a queue with due times can do: pipelined, one job a script.
Result<BrokerSetup> redis_setup(std::string_view url, std::string_view rest, bool sentinel);

}  // namespace bide::bench
