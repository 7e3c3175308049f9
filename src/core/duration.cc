#include "core/duration.h"

#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/quote.h"
#include "core/text.h"

namespace bide::core {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t ms;
};

constexpr std::array<Unit, 6> kUnits = {{
    {"w", 7ull * 24 * 60 * 60 * 1000},
    {"d", 24ull * 60 * 60 * 1000},
    {"h", 60ull * 60 * 1000},
    {"m", 60ull * 1000},
    {"s", 1000},
    {"ms", 1},
}};

constexpr std::uint64_t kLongest = std::numeric_limits<std::int64_t>::max();

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Takes from the front of `text` what `belongs`.
template <class Predicate>
std::string_view take_while(std::string_view& text, Predicate belongs) {
  std::size_t size = 0;
  while (size < text.size() && belongs(text[size])) ++size;
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
}

std::size_t unit_index(std::string_view name) {
  std::size_t index = 0;
  while (index < kUnits.size() && kUnits[index].name != name) ++index;
  return index;
}

// Adds digits * unit to `sum`. False when it does not fit.
bool add_whole(std::string_view digits, std::uint64_t unit_ms, std::uint64_t& sum) {
  std::uint64_t number = 0;
  for (const char c : digits) {
    if (__builtin_mul_overflow(number, 10u, &number)) return false;
    if (__builtin_add_overflow(number, static_cast<std::uint64_t>(c - '0'), &number)) return false;
  }
  if (__builtin_mul_overflow(number, unit_ms, &number)) return false;
  return !__builtin_add_overflow(sum, number, &sum) && sum <= kLongest;
}

// Adds 0.digits * unit to `sum`, in whole numbers so that it is exact. False when it is not a whole number of ms.
bool add_fraction(std::string_view digits, std::uint64_t unit_ms, std::uint64_t& sum) {
  while (!digits.empty() && digits.back() == '0') digits.remove_suffix(1);
  // n digits, the last not 0, come out even only if the unit has n factors of 2 or n of 5: a day has 10 factors of 2.
  if (digits.size() > 10) return false;
  std::uint64_t numerator = 0;
  std::uint64_t scale = 1;
  for (const char c : digits) {
    numerator = numerator * 10 + static_cast<std::uint64_t>(c - '0');
    scale *= 10;
  }
  if (numerator * unit_ms % scale != 0) return false;
  sum += numerator * unit_ms / scale;
  return true;
}

Error refusal(std::string_view text, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "invalid duration " + quoted(text) + ": " + why +
                                           "; write a number and a unit, such as 250ms, 10s or 1h30m (units: ms, s, m, "
                                           "h, d, w)"};
}

struct Written {
  std::string text;
  std::size_t parts = 0;
};

// `total` in those units only whose bits are in `choice`; empty when that does not come out even.
Written write_in(unsigned choice, std::uint64_t total) {
  Written written;
  for (std::size_t index = 0; index < kUnits.size(); ++index) {
    const Unit& unit = kUnits[index];
    if ((choice >> index & 1) == 0 || total < unit.ms) continue;
    written.text += std::to_string(total / unit.ms);
    written.text += unit.name;
    written.parts += 1;
    total %= unit.ms;
  }
  return total == 0 ? written : Written();
}

}  // namespace

Result<Milliseconds> parse_duration(std::string_view text) {
  if (text.empty()) return refusal(text, "it is empty");
  if (text == "0") return Milliseconds(0);
  if (text.front() == '-') return refusal(text, "it must not be negative");

  std::uint64_t sum = 0;
  std::string_view rest = text;
  std::size_t next_unit = 0;
  while (!rest.empty()) {
    const std::string_view whole = take_while(rest, is_digit);
    std::string_view fraction;
    if (whole.empty()) return refusal(text, "a number is expected at " + quoted(rest));
    if (rest.starts_with('.')) {
      rest.remove_prefix(1);
      fraction = take_while(rest, is_digit);
      if (fraction.empty()) return refusal(text, "a digit is expected after the point");
    }
    if (rest.empty()) return refusal(text, "the unit is missing");
    if (rest.front() == ' ') return refusal(text, "it must not contain spaces");

    const std::string_view name = take_while(rest, is_letter);
    if (name.empty()) return refusal(text, "a unit is expected at " + quoted(rest));
    const std::size_t index = unit_index(name);
    if (index == kUnits.size()) return refusal(text, "unknown unit " + quoted(name));
    if (index < next_unit) return refusal(text, "units go from the longest to the shortest, each once");
    next_unit = index + 1;

    const std::uint64_t unit_ms = kUnits[index].ms;
    if (!add_whole(whole, unit_ms, sum)) return refusal(text, "it is too long");
    if (!add_fraction(fraction, unit_ms, sum)) return refusal(text, "it is finer than a millisecond");
    if (sum > kLongest) return refusal(text, "it is too long");
  }
  return Milliseconds(static_cast<std::int64_t>(sum));
}

std::string format_duration(Milliseconds duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0";
  const std::string sign = count < 0 ? "-" : "";
  const std::uint64_t total = count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);

  // What nearly everybody writes: nothing is shorter than three digits and the longest unit that comes out even.
  for (const Unit& unit : kUnits) {
    if (total % unit.ms != 0) continue;
    if (total / unit.ms < 1000) return sign + std::to_string(total / unit.ms) + std::string(unit.name);
    break;
  }

  // Otherwise every choice of units is tried: there are only 63, and no rule of thumb finds both 3661s and 1d1s.
  Written best;
  for (unsigned choice = 1; choice < 1u << kUnits.size(); ++choice) {
    Written written = write_in(choice, total);
    if (written.parts == 0) continue;
    const bool shorter = written.text.size() < best.text.size() ||
                         (written.text.size() == best.text.size() && written.parts < best.parts);
    if (best.parts == 0 || shorter) best = std::move(written);
  }
  return sign + best.text;
}

std::string rough_duration(Milliseconds duration) {
  constexpr std::int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;
  const std::int64_t ms = duration.count() < 0 ? 0 : duration.count();
  const auto number = [](std::int64_t value, const char* unit) { return std::to_string(value) + unit; };
  const auto seconds = [&](std::int64_t rest) {
    const std::int64_t tenth = rest % kSecond / 100;
    return std::to_string(rest / kSecond) + (tenth == 0 ? "" : "." + std::to_string(tenth)) + "s";
  };
  const auto joined = [](std::string first, std::int64_t rest, const std::string& second) {
    return rest == 0 ? first : first + " " + second;
  };
  if (ms < kSecond) return number(ms, "ms");
  if (ms < kMinute) return seconds(ms);
  if (ms < kHour) return joined(number(ms / kMinute, "m"), ms % kMinute / 100, seconds(ms % kMinute));
  if (ms < kDay) return joined(number(ms / kHour, "h"), ms % kHour / kMinute, number(ms % kHour / kMinute, "m"));
  return joined(number(ms / kDay, "d"), ms % kDay / kHour, number(ms % kDay / kHour, "h"));
}

}  // namespace bide::core
