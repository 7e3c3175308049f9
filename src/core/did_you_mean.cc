#include "core/did_you_mean.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/quote.h"
#include "core/text.h"

namespace bide::core {
namespace {

constexpr std::size_t kLongestWord = 64;

// Optimal string alignment distance: a swap of two neighbours costs as much as any other slip of the finger.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower_case(a[i - 1]) == lower_case(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 && lower_case(a[i - 1]) == lower_case(b[j - 2]) &&
                           lower_case(a[i - 2]) == lower_case(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// Somebody who stopped typing early: the one word that begins so.
std::optional<std::string_view> only_continuation(std::string_view given, std::span<const std::string_view> words) {
  constexpr std::size_t kFewest = 2;
  if (given.size() < kFewest) return std::nullopt;
  std::optional<std::string_view> only;
  for (const std::string_view word : words) {
    const bool begins = word.size() > given.size() && distance(given, word.substr(0, given.size())) == 0;
    if (begins && only) return std::nullopt;
    if (begins) only = word;
  }
  return only;
}

}  // namespace

std::optional<std::string_view> nearest_word(std::string_view given, std::span<const std::string_view> words) {
  if (given.empty() || given.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> nearest;
  std::size_t nearest_distance = 0;
  for (const std::string_view word : words) {
    const std::size_t away = distance(given, word);
    const std::size_t allowed = std::max(given.size(), word.size()) / 3;
    if (away > allowed || (nearest && away >= nearest_distance)) continue;
    nearest = word;
    nearest_distance = away;
  }
  return nearest ? nearest : only_continuation(given, words);
}

std::string did_you_mean(std::string_view given, std::span<const std::string_view> words) {
  const std::optional<std::string_view> nearest = nearest_word(given, words);
  return nearest ? "; did you mean " + quoted(*nearest) + "?" : "";
}

}  // namespace bide::core
