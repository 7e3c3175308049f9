// Pressure: what a broker says when it wants less, and what an enqueue does about it.
//
//   auto client = bide::Client::open(url, {.pressure = bide::PressurePolicy::wait(2s)}).value();
//   client.enqueue("resize", png).value();                                                     // Waits, at most 2 s.
//   client.enqueue("log", line, {.pressure = bide::PressurePolicy::fail()});                   // kOverloaded at once.
//
//   const bide::Pressure now = client.pressure();                // 429, Retry-After: now.retry_after.
//   auto watch = client.on_pressure([](const bide::Pressure& now) { show(now); });
//
// docs/backpressure.md says what each policy means on each broker.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "bide/job.h"

namespace bide {

struct Pressure {
  enum class Level : std::uint8_t { kOk, kHigh, kBlocked };
  // What there is too much or too little of, for programs. The reason is the same for people.
  enum class Cause : std::uint8_t {
    kNone,
    kUnreachable,  // The server does not answer, or there is no connection.
    kBroker,       // The server takes nothing, by its own words.
    kDisk,
    kMemory,
    kQueueLength,   // Too much waits, with the broker or on its way there.
    kOutboxLength,  // Too much waits in the outbox of this machine.
  };
  Level level = Level::kOk;
  std::string reason = {};      // Empty when ok.
  Milliseconds retry_after{0};  // From the rate at which it has been getting less, where that is known.
  Cause cause = Cause::kNone;

  friend bool operator==(const Pressure&, const Pressure&) = default;
};

enum class OnPressure : std::uint8_t {
  kIgnore,  // The broker is asked all the same. It waits or refuses, as it does.
  kFail,    // kOverloaded at once. Nothing was written.
  kWait,    // Until the broker takes it, in the order of the calls; kOverloaded when it does not in time.
  kSpill,   // Into the outbox of this machine, which hands it on later. It may arrive behind what is enqueued after it.
};

struct PressurePolicy {
  OnPressure action = OnPressure::kIgnore;
  Milliseconds at_most{0};                           // Of kWait.
  Pressure::Level from = Pressure::Level::kBlocked;  // kHigh: already when the broker wants less.

  static PressurePolicy ignore() { return {}; }
  static PressurePolicy fail(Pressure::Level from = Pressure::Level::kBlocked) {
    return {OnPressure::kFail, Milliseconds(0), from};
  }
  static PressurePolicy wait(Milliseconds at_most, Pressure::Level from = Pressure::Level::kBlocked) {
    return {OnPressure::kWait, at_most, from};
  }
  static PressurePolicy spill(Pressure::Level from = Pressure::Level::kBlocked) {
    return {OnPressure::kSpill, Milliseconds(0), from};
  }

  friend bool operator==(const PressurePolicy&, const PressurePolicy&) = default;
};

// A callback that is told of pressure, until this is destroyed or stopped: then it is not called any more, and a call
// under way on another thread has returned. Both may happen within the callback itself.
class PressureWatch {
 public:
  struct State;

  PressureWatch() = default;
  explicit PressureWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}
  PressureWatch(PressureWatch&& other) noexcept = default;
  PressureWatch& operator=(PressureWatch&& other) noexcept;
  ~PressureWatch() { stop(); }

  void stop();

 private:
  std::shared_ptr<State> state_;
};

}  // namespace bide
