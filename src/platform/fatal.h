// require: the always-on check for broken invariants. Those are mistakes in the program, not errors that a caller could
// do something about, so it prints one line and aborts before worse is written to disk.
//
//   require(record.end <= segment.end, "a record ends within its segment");

#pragma once

#include <string_view>

namespace bide::platform {

// Prints `bide: internal error: what (file:line)` and aborts.
[[noreturn]] void fatal_check(std::string_view what, const char* file, int line);

// The built-ins are what std::source_location is made of; clang 14 has them, but not the class.
inline void require(bool holds, std::string_view what, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  if (!holds) [[unlikely]]
    fatal_check(what, file, line);
}

}  // namespace bide::platform
