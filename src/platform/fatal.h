// require: the always-on check for broken invariants. Those are mistakes in the program, not errors that a caller could
// do something about, so it prints one line and aborts before worse is written to disk.
//
//   require(record.end <= segment.end, "a record ends within its segment");

#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace bide::platform {

// Prints `bide: internal error: what (file:line)` and aborts.
[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_check(std::string_view what, const char* file, int line) {
  std::string_view name = file;
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::fprintf(stderr, "bide: internal error: %.*s (%.*s:%d)\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(name.size()), name.data(), line);
  std::fflush(stderr);
  std::abort();
}

// The built-ins are what std::source_location is made of; clang 14 has them, but not the class.
inline void require(bool holds, std::string_view what, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  if (!holds) [[unlikely]]
    fatal_check(what, file, line);
}

}  // namespace bide::platform
