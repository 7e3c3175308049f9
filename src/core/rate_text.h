// Rates as people write them: 10/s, 100/5m, 1000/d,burst=50.
//
//   rate = count "/" period [ ",burst=" count ]    period: a duration (core/duration.h), or a unit alone for one of it

#pragma once

#include <string>
#include <string_view>

#include "bide/queue_rules.h"
#include "bide/result.h"

namespace bide::core {

// Of at least one in a period. kInvalidArgument: `invalid rate '...'`, the reason, and an example.
Result<RateLimit> parse_rate(std::string_view text);

// Parses back to the same rate. Of none: "none".
std::string format_rate(const RateLimit& rate);

}  // namespace bide::core
