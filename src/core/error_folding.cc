#include "core/error_folding.h"

#include <algorithm>

namespace bide::core {
namespace {

constexpr std::size_t kMostFoldedBytes = 300;
constexpr std::size_t kMostQuoted = 80;  // A quote that ends later is an apostrophe.

bool is_word_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// Of a word, which can be an id, an address or a path.
bool is_word(char c) {
  return is_word_digit(c) || is_word_letter(c) || std::string_view("_-.:/@%?=&+~").find(c) != std::string_view::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string fold_word(std::string_view word) {
  const std::size_t end = word.find_last_not_of(".:,-/") + 1;  // The end of a sentence is not of the word.
  const std::string_view rest = word.substr(end);
  word = word.substr(0, end);
  const auto digits = std::count_if(word.begin(), word.end(), is_word_digit);
  if (digits == 0) return std::string(word).append(rest);
  // "3001", "-1.5", "10ms", "30s": a number with its unit.
  std::size_t at = word.starts_with('-') || word.starts_with('+') ? 1 : 0;
  while (at < word.size() && (is_word_digit(word[at]) || ((word[at] == '.') && at + 1 < word.size() && is_word_digit(word[at + 1])))) ++at;
  const std::string_view unit = word.substr(at);
  const bool dotted = std::count(word.begin(), word.end(), '.') > 1;
  if (is_word_digit(word[at > 0 ? at - 1 : 0]) && !dotted && unit.size() <= 3 && std::all_of(unit.begin(), unit.end(), is_word_letter)) {
    return "#" + std::string(unit).append(rest);
  }
  return "*" + std::string(rest);
}

}  // namespace

std::string fold_error(std::string_view error) {
  error = error.substr(0, std::min({error.find('\n'), error.size(), kMostFoldedBytes}));
  std::string folded;
  for (std::size_t at = 0; at < error.size();) {
    const char c = error[at];
    if (c == '\'' || c == '"' || c == '`') {
      const std::size_t end = error.find(c, at + 1);
      const bool opens = at == 0 || !is_word(error[at - 1]);
      if (opens && end != std::string_view::npos && end - at <= kMostQuoted) {
        folded.append(1, c).append("*").append(1, c);
        at = end + 1;
        continue;
      }
    }
    if (!is_word(c)) {
      folded += c;
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < error.size() && is_word(error[end])) ++end;
    folded += fold_word(error.substr(at, end - at));
    at = end;
  }
  return folded;
}

}  // namespace bide::core
