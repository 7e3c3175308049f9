// Durations as people write them: 250ms, 10s, 1.5h, 1h30m, 2d, 1w, and plain 0.
//
//   duration = "0" | part { part }          parts from the longest unit to the shortest, each unit once
//   part     = digits [ "." digits ] unit   it must come to a whole number of milliseconds
//   unit     = "w" | "d" | "h" | "m" | "s" | "ms"

#pragma once

#include <string>
#include <string_view>

#include "bide/job.h"
#include "bide/result.h"

namespace bide::core {

// kInvalidArgument: `invalid duration '...'`, the reason, and the units allowed.
Result<Milliseconds> parse_duration(std::string_view text);

// The shortest text in whole numbers of units; of several the one with the fewest parts. It parses back to the same
// duration, except that a negative one, which nobody can write, is printed with a minus.
std::string format_duration(Milliseconds duration);

// For people: at most two units, the rest left out: 250ms, 1.5s, 59m 59.9s, 3h 20m, 2d 2h. A negative one is 0ms.
std::string rough_duration(Milliseconds duration);

}  // namespace bide::core
