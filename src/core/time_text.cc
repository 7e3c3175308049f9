#include "core/time_text.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "core/quote.h"
#include "core/text.h"

namespace bide::core {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Time kFirst = std::chrono::sys_days(std::chrono::year(0) / 1 / 1);
constexpr Time kLast = std::chrono::sys_days(std::chrono::year(10'000) / 1 / 1) - Milliseconds(1);

Error time_refusal(std::string_view text, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "invalid time " + quoted(text) + ": " + why +
                                           "; write a date, a time and a zone, such as 2026-01-02T03:04:05Z or "
                                           "2026-01-02T05:04:05+02:00"};
}

// Reads a text from left to right; a step that does not fit leaves nothing taken.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::optional<int> number(std::size_t digits) {
    if (rest_.size() < digits ||
        !std::all_of(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(digits), is_digit))
      return std::nullopt;
    int value = 0;
    for (std::size_t index = 0; index < digits; ++index) value = value * 10 + (rest_[index] - '0');
    rest_.remove_prefix(digits);
    return value;
  }

  bool one_of(std::string_view allowed) {
    if (rest_.empty() || allowed.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view digits() {
    const std::size_t size = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

Milliseconds fraction_rounded_up(std::string_view digits) {
  std::int64_t ms = 0;
  for (std::size_t index = 0; index < 3; ++index) ms = ms * 10 + (index < digits.size() ? digits[index] - '0' : 0);
  const bool finer = digits.size() > 3 && digits.find_first_not_of('0', 3) != std::string_view::npos;
  return Milliseconds(ms + (finer ? 1 : 0));
}

}  // namespace

Result<Time> parse_time(std::string_view text) {
  Reader reader(text);

  const auto year = reader.number(4);
  const bool dash = year && reader.one_of("-");
  const auto month = dash ? reader.number(2) : std::nullopt;
  const bool second_dash = month && reader.one_of("-");
  const auto day = second_dash ? reader.number(2) : std::nullopt;
  if (!day) return time_refusal(text, "it does not start with a date as year-month-day");
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return time_refusal(text, "there is no such day");

  if (!reader.one_of("Tt ")) return time_refusal(text, "after the date, T and a time of day are expected");
  const auto hour = reader.number(2);
  const bool colon = hour && reader.one_of(":");
  const auto minute = colon ? reader.number(2) : std::nullopt;
  const bool second_colon = minute && reader.one_of(":");
  const auto second = second_colon ? reader.number(2) : std::nullopt;
  if (!second) return time_refusal(text, "the time of day is not hours:minutes:seconds");
  if (*hour > 23 || *minute > 59 || *second > 60) return time_refusal(text, "there is no such time of day");

  Milliseconds fraction{0};
  if (reader.one_of(".")) {
    const std::string_view digits = reader.digits();
    if (digits.empty()) return time_refusal(text, "a digit is expected after the point");
    fraction = fraction_rounded_up(digits);
  }

  minutes offset{0};
  if (reader.rest().empty()) return time_refusal(text, "the zone is missing");
  if (!reader.one_of("Zz")) {
    const bool west = reader.rest().front() == '-';
    const bool sign = reader.one_of("+-");
    const auto zone_hour = sign ? reader.number(2) : std::nullopt;
    const bool zone_colon = zone_hour && reader.one_of(":");
    const auto zone_minute = zone_colon ? reader.number(2) : std::nullopt;
    if (!zone_minute || *zone_hour > 23 || *zone_minute > 59) {
      return time_refusal(text, "the zone must be Z or an offset such as +02:00");
    }
    offset = hours(*zone_hour) + minutes(*zone_minute);
    if (west) offset = -offset;
  }
  if (!reader.rest().empty())
    return time_refusal(text, "nothing may follow the zone, but there is " + quoted(reader.rest()));

  const std::chrono::sys_seconds whole =
      std::chrono::sys_days(date) + hours(*hour) + minutes(*minute) + seconds(*second) - offset;
  // A leap second is the last of a day in UTC. This clock does not have it: it counts as the first of the next day.
  if (*second == 60 && whole.time_since_epoch() % days(1) != seconds(0)) {
    return time_refusal(text, "there is no such time of day");
  }
  const Time time = whole + fraction;
  if (time < kFirst || time > kLast) return time_refusal(text, "it is outside the years 0000 to 9999");
  return time;
}

std::string format_time(Time time) {
  const Time shown = std::clamp(time, kFirst, kLast);
  const auto day = std::chrono::floor<days>(shown);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(shown - day);
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return buffer;
}

}  // namespace bide::core
