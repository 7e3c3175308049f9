// now_ms: elapsed time of the real clock in milliseconds, for timeouts. Not a time of day.

#pragma once

#include <cstdint>

#include "platform/clock.h"

namespace bide::platform {

inline std::int64_t now_ms() { return real_clock().now().elapsed_us / 1000; }

}  // namespace bide::platform
