#include "core/url_escape.h"

namespace bide::core {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Error invalid(const char* message) { return {ErrorCode::kInvalidArgument, message}; }

}  // namespace

Result<std::string> unescape_url(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return invalid("invalid URL: % is not followed by two hexadecimal digits");
    if (high == 0 && low == 0) return invalid("invalid URL: %00 is not allowed; no path and no setting has a zero byte");
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

}  // namespace bide::core
