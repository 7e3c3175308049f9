// HostTable: how much is sent to each host, and which deliveries wait for it. Time is an argument; one owner, no lock.
//
//             failures in a row            the pause is over
//   closed ──────────────────────► open ────────────────────► half-open: one probe
//      ▲                            ▲                            │        │
//      └────────── it answers ──────┼────────────────────────────┘        │
//                                   └────────── fails again: longer ──────┘
//
// While closed, the limit of concurrent deliveries is additive increase, multiplicative decrease: one more after as many
// good answers as the limit, half when the host fails or says that it is busy.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "platform/keyed_hash.h"
#include "platform/timer_thread.h"

namespace bide::server {

using platform::Moment;

class Delivery;

// What an answer says about its host.
enum class HostHealth : std::uint8_t {
  kGood,     // It took the delivery.
  kAnswers,  // It refused this one.
  kBusy,     // It asks for less.
  kFailing,  // Unreachable, too slow, or 5xx.
  kUnknown,  // The delivery was cancelled.
};

struct HostLimits {
  int most = 8;
  int failures_to_open = 5;
  Milliseconds shortest_pause{5'000};
  Milliseconds longest_pause{300'000};
};

class HostLimiter {
 public:
  enum class Breaker : std::uint8_t { kClosed, kOpen, kHalfOpen };

  explicit HostLimiter(const HostLimits& limits);

  bool may_send(Moment now) const;
  void sent() { ++under_way_; }
  // `started` is when it was sent; `pause` is the host's Retry-After, or 0.
  void answered(HostHealth health, Moment started, Moment now, Milliseconds pause = Milliseconds(0));

  // When a delivery that may not be sent now should be tried again. Each call takes the slot after the one before, so
  // that deliveries come back at the pace at which the host takes them.
  Milliseconds next_slot(Moment now);

  Breaker breaker(Moment now) const;
  bool is_paused(Moment now) const { return now < paused_until_; }
  Milliseconds pause_left(Moment now) const;
  int limit() const { return static_cast<int>(limit_); }
  int under_way() const { return under_way_; }
  int failures_in_a_row() const { return failures_; }
  Milliseconds latency() const { return latency_; }  // Moving average.

 private:
  void open(Moment now);

  HostLimits limits_;
  double limit_;
  int under_way_ = 0;
  int failures_ = 0;          // In a row.
  bool broken_ = false;       // Open or half-open.
  Milliseconds pause_{0};     // The last one of the breaker.
  Moment paused_until_ = {};  // By the breaker, or by Retry-After.
  Moment halved_ = {};        // What was sent before says nothing about the smaller limit.
  Moment last_slot_ = {};
  Milliseconds latency_{100};
};

std::string_view to_string(HostLimiter::Breaker breaker);

struct Host {
  explicit Host(const HostLimits& limits) : limiter(limits) {}

  HostLimiter limiter;
  std::deque<Delivery*> waiting;
  Moment used = {};
  std::string last_error = {};
};

// For GET /v1/callbacks.
struct HostStatus {
  std::string host = {};
  HostLimiter::Breaker breaker = HostLimiter::Breaker::kClosed;
  Milliseconds pause{0};
  int limit = 0;
  int under_way = 0;
  std::size_t waiting = 0;
  int failures = 0;
  Milliseconds latency{0};
  std::string last_error = {};
};

class HostTable {
 public:
  // Of more than `most` hosts, the idle one that was used least recently is dropped.
  HostTable(const HostLimits& limits, std::size_t most) : limits_(limits), most_(most) {}

  // The reference is valid while something is under way or waiting.
  Host& at(const std::string& key, Moment now);
  std::size_t size() const { return hosts_.size(); }
  std::vector<HostStatus> status(Moment now) const;  // By name.

 private:
  void drop_idle();

  const HostLimits limits_;
  const std::size_t most_;
  platform::KeyedMap<std::string, Host> hosts_;
};

}  // namespace bide::server
