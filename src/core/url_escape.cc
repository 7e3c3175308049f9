#include "core/url_escape.h"

#include <algorithm>
#include <cstddef>

#include "core/did_you_mean.h"
#include "core/quote.h"
#include "core/text.h"

namespace bide::core {

namespace {

Error invalid(const char* message) { return {ErrorCode::kInvalidArgument, message}; }

constexpr std::string_view kAfterScheme = "://";
constexpr std::string_view kHidden = "***";

// Perhaps at the end of a sentence, or before what went wrong there.
bool is_port(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(".,;:)") + 1);
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// `place` is what follows `://` up to the path: NAME:PASSWORD@HOST:PORT or HOST:PORT.
std::string without_password(std::string_view place) {
  const std::size_t at = place.rfind('@');
  const std::size_t colon = place.find(':');
  if (colon == std::string_view::npos || (at != std::string_view::npos && colon > at)) return std::string(place);
  // An address of IPv6 has colons of its own.
  if (at == std::string_view::npos && (place.starts_with('[') || is_port(place.substr(colon + 1)))) {
    return std::string(place);
  }
  const std::string_view host = at == std::string_view::npos ? std::string_view() : place.substr(at);
  return std::string(place.substr(0, colon + 1)) + std::string(kHidden) + std::string(host);
}

}  // namespace

Result<std::string> unescape_url(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) return invalid("invalid URL: % is not followed by two hexadecimal digits");
    if (high == 0 && low == 0)
      return invalid("invalid URL: %00 is not allowed; no path and no setting has a zero byte");
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

std::string_view query_of(std::string_view url) {
  const std::size_t question = url.find('?');
  return question == std::string_view::npos ? std::string_view() : url.substr(question + 1);
}

Status apply_url_options(std::string_view query,
                         const std::function<Status(std::string_view name, std::string_view escaped_value)>& apply) {
  while (!query.empty()) {
    const std::string_view option = query.substr(0, query.find('&'));
    const std::string_view name = option.substr(0, option.find('='));
    const std::string_view value = option.substr(std::min(name.size() + 1, option.size()));
    if (Status applied = apply(name, value); !applied) return applied;
    query.remove_prefix(std::min(option.size() + 1, query.size()));
  }
  return {};
}

Error unknown_url_option(std::string_view name, std::span<const std::string_view> known) {
  std::string list;
  for (const std::string_view each : known) list += (list.empty() ? "" : ", ") + std::string(each);
  return {ErrorCode::kInvalidArgument,
          "unknown option " + quoted(name) + " in the URL; known are " + list + did_you_mean(name, known)};
}

std::string escape_url(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const char lower = lower_case(c);
    const bool plain = (lower >= 'a' && lower <= 'z') || is_digit(c) || c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      escaped += c;
      continue;
    }
    constexpr std::string_view kUpperDigits = "0123456789ABCDEF";
    escaped += '%';
    escaped += kUpperDigits[static_cast<unsigned char>(c) >> 4];
    escaped += kUpperDigits[static_cast<unsigned char>(c) & 15];
  }
  return escaped;
}

std::string without_secrets(std::string_view text) {
  std::string out;
  for (std::size_t found = text.find(kAfterScheme); found != std::string_view::npos; found = text.find(kAfterScheme)) {
    const std::size_t from = found + kAfterScheme.size();
    // A password with a slash in it belongs escaped; where it is not, the last @ before a space still ends it.
    const std::string_view word = text.substr(from, text.find_first_of(" \t\n'\"`", from) - from);
    const std::size_t at = word.rfind('@');
    const std::size_t size = at == std::string_view::npos ? std::min(word.find_first_of("/?#"), word.size())
                                                          : std::min(word.find_first_of("/?#", at), word.size());
    out += text.substr(0, from);
    out += without_password(word.substr(0, size));
    text.remove_prefix(from + size);
  }
  return out + std::string(text);
}

}  // namespace bide::core
