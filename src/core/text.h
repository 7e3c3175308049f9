// Text helpers: ASCII case, blanks, tokens of HTTP, hexadecimal digits, base64.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bide::core {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Letters of ASCII only, whatever the locale.
constexpr char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = lower_case(c);
  return lower;
}

constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t") {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// A token of HTTP (RFC 9110): names of fields and methods.
constexpr bool is_token(char c) {
  const char lower = lower_case(c);
  return (lower >= 'a' && lower <= 'z') || is_digit(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
constexpr bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return is_token(c); });
}

// What stands behind the backslash for these characters, in JSON and in our messages; 0: none does.
constexpr char escape_letter(std::uint32_t code) {
  switch (code) {
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    case '\\':
      return '\\';
    default:
      return 0;
  }
}

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

// -1: not a hexadecimal digit.
constexpr int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = lower_case(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}
constexpr void append_hex(std::string& out, unsigned char byte) {
  out += kHexDigits[byte >> 4];
  out += kHexDigits[byte & 15];
}
inline std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) append_hex(text, static_cast<unsigned char>(c));
  return text;
}

// Base64 of RFC 4648 with padding, strictly: no other characters, no bits left over.
std::string to_base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);  // Nothing when it is not base64.

}  // namespace bide::core
