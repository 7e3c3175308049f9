// DelayPath: how a message that must wait travels through shared queues, without anybody's help. Pure arithmetic.
//
// A delay in milliseconds is written in digits of radix 16 (or 4, 64, 256). For each level n and digit d there is a queue (n, d)
// that lets messages go after d * 16^n ms and passes them to the exchange of the level below, x(n-1); level 0 passes
// them to `due`, which routes by destination. A message visits one queue for each digit that is not zero, the highest
// first. The way is in the message: its routing key is the first hop, its CC header the keys of all later hops and last
// the destination. Each exchange knows only keys that begin with its own level, so every hop is one look-up:
//
//   delay 0x1020 ms    publish to x3 with key "3>3.1", CC = ["2>1.2", "0>!", destination]
//
//     x3 --3>3.1--> (3,1) 4096 ms --> x2 --2>1.2--> (1,2) 32 ms --> x0 --0>!--> due --destination--> its queue
//
// Keys are "from>level.digit", or "from>!" for "nothing left". The server holds a message in one queue for at most ten
// years: what takes longer goes through laps of kDelayLap first, a chain of queues of their own:
//
//   lap.2 --> (lap.2) 8.7 years --> lap.1 --> (lap.1) 8.7 years --> x9 --9>...

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bide/job.h"

namespace bide::brokers::rabbitmq {

// 2^38 ms, 8.7 years.
inline constexpr Milliseconds kDelayLap{std::int64_t{1} << 38};

struct DelayShape {
  int radix = 16;        // 4, 16, 64 or 256: a greater one needs more queues and fewer hops.
  int digits = 0;        // A delay is rounded up to so many significant digits; 0: exact.
  Milliseconds unit{1};  // A delay is rounded up to a multiple of it.
  // The part of a delay that is shorter than this is left to the worker, which saves the lowest hops; 0: nothing is.
  Milliseconds worker_wait{0};

  int levels() const;                   // So that they reach a lap.
  std::int64_t value(int level) const;  // radix^level.
  int top() const { return levels() - 1; }

  friend bool operator==(const DelayShape&, const DelayShape&) = default;
};

// A visit to one queue: from the exchange of level `from` to the queue (level, digit).
struct DelayHop {
  int from = 0;
  int level = 0;
  int digit = 0;

  friend auto operator<=>(const DelayHop&, const DelayHop&) = default;
};

struct DelayPath {
  Milliseconds total{0};            // What the message will wait: not less than was asked for. Zero: no path.
  int laps = 0;                     // Before the hops.
  std::vector<DelayHop> hops = {};  // Highest level first.
  int leaves = -1;                  // The level whose exchange is left by "level>!"; -1: level 0 leads out by itself.

  friend bool operator==(const DelayPath&, const DelayPath&) = default;
};

// Never less than `delay`; exactly `delay` where the shape does not round; a longer delay never gives a shorter total.
// A delay of zero or less needs no path. Not more than Limits::kDelay makes sense.
DelayPath delay_path(const DelayShape& shape, Milliseconds delay);

// What is left of a delay for the path when the worker waits for the rest.
Milliseconds before_worker(const DelayShape& shape, Milliseconds delay);

// "3>1.2", and "3>!".
std::string hop_key(const DelayHop& hop);
std::string leave_key(int level);

}  // namespace bide::brokers::rabbitmq
