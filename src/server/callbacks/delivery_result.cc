#include "server/callbacks/delivery_result.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "core/duration.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "core/text.h"
#include "server/callbacks/address_policy.h"

namespace bide::server {

namespace {

using http_client::HttpAnswer;
using http_client::HttpFailure;
using Kind = DeliveryResult::Kind;

constexpr std::size_t kShownAnswer = 200;

std::string body_excerpt(const HttpAnswer& answer) {
  if (answer.body.empty()) return {};
  const bool cut = answer.body.size() > kShownAnswer;
  return ": " + core::printable(std::string_view(answer.body).substr(0, kShownAnswer)) + (cut ? "..." : "");
}

DeliveryResult result_of_failure(const HttpAnswer& answer) {
  switch (answer.failure) {
    case HttpFailure::kInvalid: return {Kind::kDead, HostHealth::kUnknown, answer.error, {}};
    case HttpFailure::kAddressRefused: {
      // What a name resolves to may change; that it is this server is not worth a retry.
      const bool own = answer.error.find(kOwnListenerRule) != std::string::npos;
      return {own ? Kind::kDead : Kind::kFailed, HostHealth::kUnknown, answer.error, {}};
    }
    case HttpFailure::kAddressBusy: return {Kind::kReturned, HostHealth::kUnknown, answer.error, {}};
    case HttpFailure::kTooLarge: return {Kind::kFailed, HostHealth::kAnswers, answer.error, {}};
    case HttpFailure::kCancelled:
      if (!answer.sent) return {Kind::kReturned, HostHealth::kUnknown, answer.error, {}};
      return {Kind::kUnanswered, HostHealth::kUnknown, "the server stopped before the receiver answered", {}};
    default: return {Kind::kFailed, HostHealth::kFailing, answer.error, {}};
  }
}

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::optional<int> parse_int(std::string_view text) {
  const auto value = core::parse_integer<int>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

// Split at spaces, commas and hyphens: all three forms have five or six words.
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
  // In the order of the first form: weekday, day, month, year, time, zone.
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
  constexpr Milliseconds kMost = Limits::kDelay;
  if (!text.empty() && std::all_of(text.begin(), text.end(), core::is_digit)) {
    const auto seconds = core::parse_integer<std::int64_t>(text);
    return seconds && *seconds <= kMost.count() / 1000 ? std::chrono::seconds(*seconds) : kMost;
  }
  const auto date = parse_http_date(text, now);
  if (!date) return std::nullopt;
  return std::clamp<Milliseconds>(*date - now, Milliseconds(0), kMost);
}

DeliveryResult result_of(const HttpAnswer& answer, Time now, Milliseconds longest) {
  if (answer.failure != HttpFailure::kNone) return result_of_failure(answer);
  const int status = answer.status;
  const std::string answered = "the receiver answered " + std::to_string(status);
  if (status == 202) return {Kind::kAccepted, HostHealth::kGood, {}, {}};
  if (status >= 200 && status < 300) return {Kind::kDone, HostHealth::kGood, {}, {}};
  if (status >= 300 && status < 400) {
    return {Kind::kFailed, HostHealth::kAnswers, answered + ": redirects are not followed", {}};
  }
  if (status == 410) return {Kind::kDead, HostHealth::kAnswers, answered + " (gone)" + body_excerpt(answer), {}};
  if (status == 429 || status == 503) {
    const auto asked = parse_retry_after(answer.field("retry-after"), now);
    const HostHealth health = status == 429 || asked ? HostHealth::kBusy : HostHealth::kFailing;
    if (!asked) return {Kind::kFailed, health, answered + body_excerpt(answer), {}};
    const Milliseconds wait = std::min(*asked, longest);
    return {Kind::kFailed, health,
            answered + ", to be tried again in " + core::rough_duration(wait) + body_excerpt(answer), wait};
  }
  return {
      Kind::kFailed, status >= 500 ? HostHealth::kFailing : HostHealth::kAnswers, answered + body_excerpt(answer), {}};
}

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kDone: return "done";
    case Kind::kAccepted: return "accepted";
    case Kind::kDead: return "dead";
    case Kind::kFailed: return "failed";
    case Kind::kReturned: return "returned";
    case Kind::kUnanswered: return "unanswered";
  }
  return "failed";
}

}  // namespace bide::server
