// Jobs that are due at a random moment of the day that begins in an hour.

#pragma once

#include <cstdint>

#include "bide/broker.h"
#include "bide/result.h"

namespace bide::bench {

// Durable when it returns. In the queue `later`.
Status load_delayed(Broker& broker, std::uint64_t jobs);

}  // namespace bide::bench
