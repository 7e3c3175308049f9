// Values of options in a URL, for the dialects.

#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "bide/result.h"
#include "core/duration.h"
#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::brokers::rabbitmq::compat {

inline Error wrong_value(std::string_view value, const std::string& allowed) {
  return {ErrorCode::kInvalidArgument, "invalid value " + core::quoted(value) + "; allowed: " + allowed};
}

inline Status set_count(std::uint32_t& into, std::string_view value, std::uint32_t least, std::uint32_t most) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least || number > most) {
    return wrong_value(value, "whole numbers from " + std::to_string(least) + " to " + std::to_string(most));
  }
  into = number;
  return {};
}

// A plain number is milliseconds, as the other systems have it.
inline Status set_milliseconds(Milliseconds& into, std::string_view value) {
  std::uint32_t plain = 0;
  if (set_count(plain, value, 1, 0x7fffffff)) {
    into = Milliseconds(plain);
    return {};
  }
  const Result<Milliseconds> duration = core::parse_duration(value);
  if (!duration || *duration < Milliseconds(1) || *duration > Milliseconds(0x7fffffff)) {
    return wrong_value(value, "milliseconds such as 60000, or a duration such as 60s, up to 24 days");
  }
  into = *duration;
  return {};
}

// Names separated by commas.
inline Status set_queues(std::set<std::string>& queues, const std::string& value) {
  for (std::size_t start = 0; start <= value.size();) {
    const std::size_t end = std::min(value.find(',', start), value.size());
    const std::string queue = value.substr(start, end - start);
    if (!core::is_name(queue)) return wrong_value(queue, "names of queues, separated by commas");
    queues.insert(queue);
    start = end + 1;
  }
  return {};
}

// Waits such as 10s,100s,1h, or any policy.
inline Status set_policy(std::optional<RetryPolicy>& into, const std::string& value) {
  const bool is_policy = value.find('(') != std::string::npos || value == "none" || value.starts_with("exponential");
  const Result<RetryPolicy> policy = RetryPolicy::parse(is_policy ? value : "steps(" + value + ")");
  if (!policy) return policy.error();
  into = *policy;
  return {};
}

}  // namespace bide::brokers::rabbitmq::compat
