// HostLine: how much is sent to one host. Pure: time is an argument.
//
//             failures in a row            the pause is over
//   closed ──────────────────────► open ────────────────────► half-open: one probe
//      ▲                            ▲                            │        │
//      └────────── it answers ──────┼────────────────────────────┘        │
//                                   └────────── fails again: longer ──────┘
//
// While it is closed the number of deliveries under way follows what the host can take: it grows by one after as many
// good answers as are under way, and is halved when the host fails or says that it is busy (AIMD).

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bide/job.h"

namespace bide::server {

using Moment = std::chrono::steady_clock::time_point;

// What an answer says about its host.
enum class HostSign : std::uint8_t {
  kWell,     // It took the delivery.
  kAnswers,  // It did not like this one, but it is there.
  kBusy,     // It wants less.
  kFailing,  // Unreachable, broken, too slow, or at fault by its own account.
  kNone,     // Nothing: the delivery was called off.
};

struct HostLimits {
  int most = 8;
  int failures_to_open = 5;
  Milliseconds shortest_pause{5'000};
  Milliseconds longest_pause{300'000};
};

class HostLine {
 public:
  enum class Breaker : std::uint8_t { kClosed, kOpen, kHalfOpen };

  explicit HostLine(const HostLimits& limits);

  bool may_send(Moment now) const;
  void sent() { ++under_way_; }
  // `started` is when it was sent; `pause` what the host asked for, if it did.
  void answered(HostSign sign, Moment started, Moment now, Milliseconds pause = Milliseconds(0));

  // When a delivery that may not be sent now should come again. Each call books a place behind the one before, so that
  // what is waiting comes back at the pace at which the host takes it.
  Milliseconds book(Moment now);

  Breaker breaker(Moment now) const;
  bool is_paused(Moment now) const { return now < paused_until_; }
  Milliseconds pause_left(Moment now) const;
  int limit() const { return static_cast<int>(limit_); }
  int under_way() const { return under_way_; }
  int failures_in_a_row() const { return failures_; }
  Milliseconds typical() const { return typical_; }  // How long it takes to answer.

 private:
  void open(Moment now);

  HostLimits limits_;
  double limit_;
  int under_way_ = 0;
  int failures_ = 0;          // In a row.
  bool broken_ = false;       // Open or half-open.
  Milliseconds pause_{0};     // The last one of the breaker.
  Moment paused_until_ = {};  // By the breaker, or because the host asked for it.
  Moment halved_ = {};        // What was sent before says nothing about the smaller limit.
  Moment booked_until_ = {};
  Milliseconds typical_{100};
};

std::string_view to_string(HostLine::Breaker breaker);

}  // namespace bide::server
