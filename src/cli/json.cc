#include "cli/json.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace bide::cli {

namespace {

// Bytes of the character that begins here; 0 when it is not UTF-8.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    if (!follows(1) || !follows(2)) return 0;
    const unsigned second = byte(1);
    // Not longer than needed, and no half of a surrogate pair.
    return (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ? 0 : 3;
  }
  if (first >= 0xf0 && first < 0xf5) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    const unsigned second = byte(1);
    return (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90) ? 0 : 4;
  }
  return 0;
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
    out += c;
    return;
  }
  char escape[8];
  std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
  out += escape;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) {
      out += "\xef\xbf\xbd";
      text.remove_prefix(1);
      continue;
    }
    if (bytes == 1) {
      append_escaped(out, text.front());
    } else if (bytes == 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0) {
      // Controls of the second half, which terminals obey as well.
      out += "\\u00" + std::string(text[1] < '\x90' ? "8" : "9") + "0123456789abcdef"[text[1] & 15];
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out + "\"";
}

std::string json_number(double number) {
  if (!std::isfinite(number)) return "null";
  char buffer[64];
  // Fixed, because 5e-01 is right and yet nobody wants to read it.
  const bool ordinary = number == 0 || (std::fabs(number) >= 1e-6 && std::fabs(number) < 1e15);
  const auto end = ordinary ? std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed)
                            : std::to_chars(buffer, buffer + sizeof buffer, number);
  return std::string(buffer, end.ptr);
}

JsonObject& JsonObject::raw(std::string_view name, std::string_view json) {
  if (text_.size() > 1) text_ += ",";
  text_ += json_string(name);
  text_ += ":";
  text_ += json;
  return *this;
}

JsonObject& JsonObject::add(std::string_view name, const JsonArray& value) { return raw(name, value.text()); }

JsonArray& JsonArray::raw(std::string_view json) {
  if (text_.size() > 1) text_ += ",";
  text_ += json;
  return *this;
}

}  // namespace bide::cli
