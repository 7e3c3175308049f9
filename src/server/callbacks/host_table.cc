#include "server/callbacks/host_table.h"

#include <algorithm>

namespace bide::server {

namespace {

constexpr double kFirstLimit = 4;
constexpr Milliseconds kShortestWait{50};
constexpr Milliseconds kLongestWait{5 * 60 * 1000};

}  // namespace

HostLimiter::HostLimiter(const HostLimits& limits)
    : limits_(limits), limit_(std::min<double>(kFirstLimit, limits.most)) {}

bool HostLimiter::may_send(Moment now) const {
  if (is_paused(now)) return false;
  return broken_ ? under_way_ == 0 : under_way_ < limit();
}

void HostLimiter::open(Moment now) {
  pause_ = std::clamp(broken_ ? pause_ * 2 : limits_.shortest_pause, limits_.shortest_pause, limits_.longest_pause);
  broken_ = true;
  limit_ = 1;
  paused_until_ = std::max(paused_until_, now + pause_);
  last_slot_ = paused_until_;
}

void HostLimiter::answered(HostHealth health, Moment started, Moment now, Milliseconds pause) {
  --under_way_;
  if (health == HostHealth::kUnknown) return;
  const auto took = std::chrono::duration_cast<Milliseconds>(now - started);
  latency_ = std::max((latency_ * 7 + took) / 8, Milliseconds(1));
  if (health == HostHealth::kFailing) {
    // What was under way when the breaker opened failed for the same reason.
    const bool probe = broken_ && started >= paused_until_;
    ++failures_;
    if (probe || (!broken_ && failures_ >= limits_.failures_to_open)) return open(now);
  } else {
    failures_ = 0;
    if (broken_) paused_until_ = now;
    broken_ = false;
  }
  if (health == HostHealth::kGood) limit_ = std::min<double>(limit_ + 1 / limit_, limits_.most);
  if ((health == HostHealth::kFailing || health == HostHealth::kBusy) && started >= halved_) {
    limit_ = std::max(limit_ / 2, 1.0);
    halved_ = now;
  }
  if (pause.count() > 0) {
    paused_until_ = std::max(paused_until_, now + pause);
    last_slot_ = std::max(last_slot_, paused_until_);
  }
}

Milliseconds HostLimiter::next_slot(Moment now) {
  last_slot_ = std::max({last_slot_, now, paused_until_}) + std::max(latency_ / limit(), Milliseconds(1));
  const auto wait = std::chrono::ceil<Milliseconds>(last_slot_ - now);
  if (wait <= kLongestWait + pause_left(now)) return std::max(wait, kShortestWait);
  // Too far ahead to predict: they come again together and get new slots.
  return kLongestWait + pause_left(now);
}

Milliseconds HostLimiter::pause_left(Moment now) const {
  return is_paused(now) ? std::chrono::ceil<Milliseconds>(paused_until_ - now) : Milliseconds(0);
}

HostLimiter::Breaker HostLimiter::breaker(Moment now) const {
  if (!broken_) return Breaker::kClosed;
  return is_paused(now) ? Breaker::kOpen : Breaker::kHalfOpen;
}

std::string_view to_string(HostLimiter::Breaker breaker) {
  switch (breaker) {
    case HostLimiter::Breaker::kClosed: return "closed";
    case HostLimiter::Breaker::kOpen: return "open";
    case HostLimiter::Breaker::kHalfOpen: return "half-open";
  }
  return "closed";
}

Host& HostTable::at(const std::string& key, Moment now) {
  auto found = hosts_.find(key);
  if (found == hosts_.end()) {
    if (hosts_.size() >= most_) drop_idle();
    found = hosts_.emplace(key, Host(limits_)).first;
  }
  found->second.used = now;
  return found->second;
}

// When all are busy there are no more of them than deliveries.
void HostTable::drop_idle() {
  auto idle = hosts_.end();
  for (auto host = hosts_.begin(); host != hosts_.end(); ++host) {
    if (host->second.limiter.under_way() > 0 || !host->second.waiting.empty()) continue;
    if (idle == hosts_.end() || host->second.used < idle->second.used) idle = host;
  }
  if (idle != hosts_.end()) hosts_.erase(idle);
}

std::vector<HostStatus> HostTable::status(Moment now) const {
  std::vector<HostStatus> all;
  for (const auto& [key, host] : hosts_) {
    all.push_back({.host = key,
                   .breaker = host.limiter.breaker(now),
                   .pause = host.limiter.pause_left(now),
                   .limit = host.limiter.limit(),
                   .under_way = host.limiter.under_way(),
                   .waiting = host.waiting.size(),
                   .failures = host.limiter.failures_in_a_row(),
                   .latency = host.limiter.latency(),
                   .last_error = host.last_error});
  }
  std::sort(all.begin(), all.end(), [](const HostStatus& a, const HostStatus& b) { return a.host < b.host; });
  return all;
}

}  // namespace bide::server
