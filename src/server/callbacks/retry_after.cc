#include "server/callbacks/retry_after.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>
#include <vector>

namespace bide::server {

namespace {

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::optional<int> parse_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Words, parted by spaces, commas and hyphens: all three forms come to five or six of them.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" ,-"), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

std::optional<Time> parse_http_date(std::string_view text, Time now) {
  if (text.size() > 64) return std::nullopt;
  std::vector<std::string_view> words = words_of(text);
  // Into the order of the first form: weekday, day, month, year, time, zone.
  if (words.size() == 5) words = {words[0], words[2], words[1], words[4], words[3], "GMT"};
  if (words.size() != 6 || words[5] != "GMT") return std::nullopt;
  const auto day = parse_int(words[1]);
  const auto month = std::find(kMonths.begin(), kMonths.end(), words[2]);
  auto year = parse_int(words[3]);
  const std::string_view clock = words[4];
  if (!day || month == kMonths.end() || !year || clock.size() != 8 || clock[2] != ':' || clock[5] != ':')
    return std::nullopt;
  const auto hour = parse_int(clock.substr(0, 2));
  const auto minute = parse_int(clock.substr(3, 2));
  const auto second = parse_int(clock.substr(6, 2));
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  if (words[3].size() == 2) {
    const int this_year =
        static_cast<int>(std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(now)).year());
    *year += this_year / 100 * 100;
    if (*year > this_year + 50) *year -= 100;
  } else if (words[3].size() != 4) {
    return std::nullopt;
  }
  const auto date = std::chrono::year(*year) / (static_cast<int>(month - kMonths.begin()) + 1) / *day;
  if (!date.ok()) return std::nullopt;
  return Time(std::chrono::sys_days(date)) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second);
}

std::optional<Milliseconds> parse_retry_after(std::string_view text, Time now) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  constexpr Milliseconds kMost = Limits::kDelay;
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_digit)) {
    std::int64_t seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || seconds > kMost.count() / 1000) return kMost;
    return std::chrono::seconds(seconds);
  }
  const auto date = parse_http_date(text, now);
  if (!date) return std::nullopt;
  return std::clamp<Milliseconds>(*date - now, Milliseconds(0), kMost);
}

}  // namespace bide::server
