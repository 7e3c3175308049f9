// Moments of the wall clock as text: RFC 3339, always with a zone.
//
//   2026-01-02T03:04:05Z   2026-01-02T03:04:05.678Z   2026-01-02T05:04:05+02:00

#pragma once

#include <string>
#include <string_view>

#include "bide/job.h"
#include "bide/result.h"

namespace bide::core {

// A fraction finer than a millisecond is rounded up: what is due then must not start early.
// kInvalidArgument: `invalid time '...'`, the reason, and an example.
Result<Time> parse_time(std::string_view text);

// In UTC with milliseconds: 2026-01-02T03:04:05.678Z. Parses back to the same moment. What lies outside the years 0 to
// 9999, which the format cannot say, is printed as the nearest moment that it can.
std::string format_time(Time time);

}  // namespace bide::core
