#include "core/queue_rules.h"

#include <set>
#include <string>

#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::core {

namespace {

// An empty bucket is full after at most so long, however large a burst was asked for.
constexpr std::int64_t kLongestFillNs = 10ll * 365 * 24 * 3600 * 1'000'000'000;

Error out_of_range(std::string_view field, std::string text, std::string_view allowed) {
  return Error{ErrorCode::kInvalidArgument,
               std::string(field) + " " + std::move(text) + " is out of range; allowed: " + std::string(allowed)};
}

Status check_rate(std::string_view field, const RateLimit& rate) {
  if (rate.count == 0) return {};
  const std::string name(field);
  if (rate.count > kHighestCount) return out_of_range(name + ".count", std::to_string(rate.count), "0 to 1000000");
  if (rate.period < Milliseconds(1) || rate.period > kLongestPeriod) {
    return out_of_range(name + ".period", std::to_string(rate.period.count()) + " ms", "1ms to 31d");
  }
  if (rate.burst < 1 || rate.burst > kHighestCount) {
    return out_of_range(name + ".burst", std::to_string(rate.burst), "1 to 1000000");
  }
  return {};
}

Status check_weights(const QueueRules& rules) {
  if (rules.weights.size() > kMostWeights) {
    return out_of_range("weights", "of " + std::to_string(rules.weights.size()) + " groups", "at most 1000 groups");
  }
  if (!rules.weights.empty() && !rules.fair) {
    return Error{ErrorCode::kInvalidArgument, "weights: groups have turns only where the queue is fair"};
  }
  std::set<std::string_view> seen;
  for (const auto& [group, weight] : rules.weights) {
    Job job{.kind = "k"};
    job.group = group;
    if (group.empty()) return Error{ErrorCode::kInvalidArgument, "weights: a group has no name"};
    if (const auto problem = find_problem(job, Time())) return Error{ErrorCode::kInvalidArgument, "weights: " + problem->message};
    if (weight < 1 || weight > kMostTurns) {
      return out_of_range("weight", std::to_string(weight) + " of group " + quoted(group), "1 to 100");
    }
    if (!seen.insert(group).second) {
      return Error{ErrorCode::kInvalidArgument, "weights: group " + quoted(group) + " is given twice"};
    }
  }
  return {};
}

}  // namespace

Status validate(const QueueRules& rules) {
  if (!is_name(rules.queue)) {
    return Error{ErrorCode::kInvalidArgument, "invalid queue name " + quoted(rules.queue) + std::string(kNameRule)};
  }
  if (Status valid = check_rate("rate", rules.rate); !valid) return valid;
  if (Status valid = check_rate("group_rate", rules.group_rate); !valid) return valid;
  if (Status valid = check_weights(rules); !valid) return valid;
  for (const auto& [name, time] : {std::pair{"ageing", rules.ageing}, std::pair{"oldest", rules.oldest}}) {
    if (time >= Milliseconds(0) && time <= Limits::kDelay) continue;
    return out_of_range(name, std::to_string(time.count()) + " ms", "0 to 100 years");
  }
  return {};
}

bool has_any(const QueueRules& rules) {
  return rules.at_once != 0 || rules.rate.count != 0 || tells_groups_apart(rules) || rules.ageing.count() != 0 ||
         rules.most_jobs != 0 || rules.most_bytes != 0 || rules.oldest.count() != 0;
}

int weight_of(const QueueRules& rules, std::string_view group) {
  const auto found = std::find_if(rules.weights.begin(), rules.weights.end(),
                                  [group](const auto& weight) { return weight.first == group; });
  return found == rules.weights.end() ? 1 : std::clamp(found->second, 1, kMostTurns);
}

std::uint32_t burst_of(const RateLimit& limit) {
  const std::int64_t portion = limit.count * kPortion.count() / std::max<std::int64_t>(1, limit.period.count());
  const std::int64_t most = std::min<std::int64_t>(kHighestCount, kLongestFillNs / interval_ns(limit));
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(std::max<std::int64_t>(portion, limit.burst), 1, most));
}

std::int64_t interval_ns(const RateLimit& limit) {
  const std::int64_t count = std::max<std::int64_t>(1, limit.count);
  return std::max<std::int64_t>(1, (limit.period.count() * 1'000'000 + count - 1) / count);
}

std::int64_t TokenBucket::full_at(const RateLimit& limit, std::int64_t now_ms) const {
  const std::int64_t now_ns = now_ms * kNsInMs;
  const std::int64_t interval = interval_ns(limit);
  return std::clamp(full_at_ns_, now_ns, now_ns + burst_of(limit) * interval);
}

std::uint64_t TokenBucket::tokens(const RateLimit& limit, std::int64_t now_ms) const {
  const std::int64_t interval = interval_ns(limit);
  const std::int64_t missing_ns = full_at(limit, now_ms) - now_ms * kNsInMs;
  const std::int64_t missing = (missing_ns + interval - 1) / interval;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, burst_of(limit) - missing));
}

void TokenBucket::take(const RateLimit& limit, std::int64_t now_ms, std::uint64_t count) {
  const std::int64_t interval = interval_ns(limit);
  const auto most = static_cast<std::uint64_t>(kLongestFillNs / interval);
  full_at_ns_ = full_at(limit, now_ms) + static_cast<std::int64_t>(std::min(count, most)) * interval;
}

std::int64_t TokenBucket::next_ms(const RateLimit& limit, std::int64_t now_ms, std::uint64_t taken) const {
  // Tokens at t: burst - ceil((full_at - t) / interval).
  const std::int64_t spare = static_cast<std::int64_t>(burst_of(limit)) - 1 -
                             static_cast<std::int64_t>(std::min<std::uint64_t>(taken, kHighestCount));
  const std::int64_t at_ns = full_at(limit, now_ms) - spare * interval_ns(limit);
  return (at_ns + kNsInMs - 1) / kNsInMs;
}

}  // namespace bide::core
