#include "server/callbacks/host_line.h"

#include <algorithm>

namespace bide::server {

namespace {

// Nobody knows the host yet.
constexpr double kFirstLimit = 4;
constexpr Milliseconds kShortestBooking{50};
constexpr Milliseconds kLongestBooking{5 * 60 * 1000};

}  // namespace

HostLine::HostLine(const HostLimits& limits) : limits_(limits), limit_(std::min<double>(kFirstLimit, limits.most)) {}

bool HostLine::may_send(Moment now) const {
  if (is_paused(now)) return false;
  return broken_ ? under_way_ == 0 : under_way_ < limit();
}

void HostLine::open(Moment now) {
  pause_ = std::clamp(broken_ ? pause_ * 2 : limits_.shortest_pause, limits_.shortest_pause, limits_.longest_pause);
  broken_ = true;
  limit_ = 1;
  paused_until_ = std::max(paused_until_, now + pause_);
  booked_until_ = paused_until_;
}

void HostLine::answered(HostSign sign, Moment started, Moment now, Milliseconds pause) {
  --under_way_;
  if (sign == HostSign::kNone) return;
  const auto took = std::chrono::duration_cast<Milliseconds>(now - started);
  typical_ = std::max((typical_ * 7 + took) / 8, Milliseconds(1));
  if (sign == HostSign::kFailing) {
    // What was under way when the breaker opened failed for the same reason: it is not a second one.
    const bool probe = broken_ && started >= paused_until_;
    ++failures_;
    if (probe || (!broken_ && failures_ >= limits_.failures_to_open)) return open(now);
  } else {
    failures_ = 0;
    if (broken_) paused_until_ = now;
    broken_ = false;
  }
  if (sign == HostSign::kWell) limit_ = std::min<double>(limit_ + 1 / limit_, limits_.most);
  if ((sign == HostSign::kFailing || sign == HostSign::kBusy) && started >= halved_) {
    limit_ = std::max(limit_ / 2, 1.0);
    halved_ = now;
  }
  if (pause.count() > 0) {
    paused_until_ = std::max(paused_until_, now + pause);
    booked_until_ = std::max(booked_until_, paused_until_);
  }
}

Milliseconds HostLine::book(Moment now) {
  booked_until_ = std::max({booked_until_, now, paused_until_}) + std::max(typical_ / limit(), Milliseconds(1));
  const auto wait = std::chrono::ceil<Milliseconds>(booked_until_ - now);
  if (wait <= kLongestBooking + pause_left(now)) return std::max(wait, kShortestBooking);
  // Too far ahead to be believed: the host may get faster. They come again together and are booked anew.
  return kLongestBooking + pause_left(now);
}

Milliseconds HostLine::pause_left(Moment now) const {
  return is_paused(now) ? std::chrono::ceil<Milliseconds>(paused_until_ - now) : Milliseconds(0);
}

HostLine::Breaker HostLine::breaker(Moment now) const {
  if (!broken_) return Breaker::kClosed;
  return is_paused(now) ? Breaker::kOpen : Breaker::kHalfOpen;
}

std::string_view to_string(HostLine::Breaker breaker) {
  switch (breaker) {
    case HostLine::Breaker::kClosed: return "closed";
    case HostLine::Breaker::kOpen: return "open";
    case HostLine::Breaker::kHalfOpen: return "half-open";
  }
  return "closed";
}

}  // namespace bide::server
