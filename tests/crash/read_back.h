// Reading back what is in a broker, for the checker.

#pragma once

#include <string>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "crash/checker.h"

namespace bide::crash {

// As far as the broker can be asked. Throws when it refuses to answer what it says that it can.
Readback read_back(const Capabilities& can, Inspector& inspector);

// Scheduled, ready or running, in all queues together.
std::uint64_t count_unfinished(Inspector& inspector);

}  // namespace bide::crash
