#include "core/rate_text.h"

#include <algorithm>
#include <array>

#include "core/duration.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "core/text.h"

namespace bide::core {

namespace {

constexpr std::string_view kBurst = "burst=";
constexpr std::array<std::string_view, 6> kUnits = {"ms", "s", "m", "h", "d", "w"};

bool is_unit(std::string_view text) { return std::find(kUnits.begin(), kUnits.end(), text) != kUnits.end(); }

Error invalid_rate(std::string_view text, const std::string& why) {
  return {ErrorCode::kInvalidArgument,
          "invalid rate " + quoted(text) + ": " + why + "; allowed is such as 10/s, 100/5m or 10/s,burst=20"};
}

}  // namespace

Result<RateLimit> parse_rate(std::string_view text) {
  const std::string_view given = trimmed(text);
  const std::size_t comma = given.find(',');
  const std::string_view rate = trimmed(given.substr(0, comma));
  const std::size_t slash = rate.find('/');
  if (slash == std::string_view::npos) return invalid_rate(text, "it has no period");
  RateLimit limit;
  const auto count = parse_integer<std::uint32_t>(trimmed(rate.substr(0, slash)));
  if (!count || *count == 0) return invalid_rate(text, "the count must be a whole number from 1");
  limit.count = *count;
  const std::string_view period = trimmed(rate.substr(slash + 1));
  const Result<Milliseconds> span = parse_duration(is_unit(period) ? "1" + std::string(period) : std::string(period));
  if (!span) return invalid_rate(text, span.error().message);
  if (span->count() <= 0) return invalid_rate(text, "the period must be longer than nothing");
  limit.period = *span;
  if (comma == std::string_view::npos) return limit;
  const std::string_view rest = trimmed(given.substr(comma + 1));
  const auto burst = rest.starts_with(kBurst) ? parse_integer<std::uint32_t>(rest.substr(kBurst.size())) : std::nullopt;
  if (!burst || *burst == 0) return invalid_rate(text, "after the comma is burst=N, a whole number from 1");
  limit.burst = *burst;
  return limit;
}

std::string format_rate(const RateLimit& rate) {
  if (rate.count == 0) return "none";
  std::string period = format_duration(rate.period);
  if (period.front() == '1' && is_unit(std::string_view(period).substr(1))) period.erase(0, 1);
  return std::to_string(rate.count) + "/" + period +
         (rate.burst == RateLimit().burst ? "" : "," + std::string(kBurst) + std::to_string(rate.burst));
}

}  // namespace bide::core
