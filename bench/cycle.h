// The whole life of jobs: enqueued by some threads, leased, settled by others; every step durable.

#pragma once

#include <cstdint>

#include "bide/broker.h"
#include "bide/result.h"

namespace bide::bench {

// From the first enqueue to the last confirmed settle, in jobs a second. In the queue `cycle`.
Result<double> cycle_rate(Broker& broker, std::uint64_t jobs);

}  // namespace bide::bench
