// Numbers as text. Those with a point are written as the shortest text that reads back to exactly the same number.

#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace bide::core {

inline std::string format_number(double number) {
  char buffer[32];
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof buffer, number);
  return std::string(buffer, end.ptr);
}

// Nothing when the text is anything but a number, or too large for one. It may still be infinite or not a number.
inline std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const std::from_chars_result end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// Nothing when the text is anything but a whole number, or does not fit.
template <class T>
std::optional<T> parse_integer(std::string_view text, int digits = 10) {
  T number = 0;
  const std::from_chars_result end = std::from_chars(text.data(), text.data() + text.size(), number, digits);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace bide::core
