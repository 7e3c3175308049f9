#include "core/secrets.h"

#include <algorithm>
#include <cstddef>

namespace bide::core {
namespace {

constexpr std::string_view kBegin = "://";
constexpr std::string_view kHidden = "***";

// Perhaps at the end of a sentence, or before what went wrong there.
bool is_port(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(".,;:)") + 1);
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// `place` is what follows `://` up to the path: NAME:PASSWORD@HOST:PORT or HOST:PORT.
std::string hidden(std::string_view place) {
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

std::string without_secrets(std::string_view text) {
  std::string out;
  for (std::size_t found = text.find(kBegin); found != std::string_view::npos; found = text.find(kBegin)) {
    const std::size_t from = found + kBegin.size();
    // A password with a slash in it belongs escaped; where it is not, the last @ before a space still ends it.
    const std::string_view word = text.substr(from, text.find_first_of(" \t\n'\"`", from) - from);
    const std::size_t at = word.rfind('@');
    const std::size_t size = at == std::string_view::npos ? std::min(word.find_first_of("/?#"), word.size())
                                                          : std::min(word.find_first_of("/?#", at), word.size());
    out += text.substr(0, from);
    out += hidden(word.substr(0, size));
    text.remove_prefix(from + size);
  }
  return out + std::string(text);
}

}  // namespace bide::core
