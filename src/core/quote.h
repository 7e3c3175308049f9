// quoted(): what somebody gave us, made fit for one line of an error message.
//
//   quoted("a\nb")   'a\nb'
//   quoted(300 x's)  'xxx'... (300 bytes), with 64 of them
//
// At most 64 characters are shown. Quotes and backslashes, control characters, bytes that are not UTF-8, and characters
// that end a line or turn the direction of text are escaped: a message can neither be forged nor spoil a terminal.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bide::core {

inline constexpr std::size_t kQuotedCharacters = 64;

// A function object, so that quoted(std::string) is never taken for std::quoted, which <iomanip> brings along.
struct Quote {
  std::string operator()(std::string_view text) const;
};
inline constexpr Quote quoted;

// The whole text on one line, without quotes and not cut: for lines that hold what handlers, files or other people said.
// Escaped is what quoted() escapes, except quotes and backslashes.
std::string printable(std::string_view text);

}  // namespace bide::core
