// PressureGate: what stands between a client and its broker while the broker wants less. Those who wait are let through
// in the order of their calls, a few at first and more and more as long as the pressure stays away; what the broker
// refuses all the same waits again. Nobody tells a client when the pressure changes, so a thread looks, while anybody
// waits or watches.
//
// Safe to call from any thread. Completions run on a thread of the broker or on the gate's own.

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "bide/broker.h"
#include "bide/pressure.h"

namespace bide::client {

class PressureGate {
 public:
  // What those who wait hold at most; beyond it whoever comes is refused.
  static constexpr std::size_t kWaitingBytes = 64 << 20;

  // The outbox may be null: then nothing can be spilled.
  PressureGate(std::shared_ptr<Broker> broker, std::shared_ptr<Broker> outbox);
  ~PressureGate();  // Closes.
  PressureGate(const PressureGate&) = delete;
  PressureGate& operator=(const PressureGate&) = delete;

  void enqueue(std::vector<Job> jobs, const PressurePolicy& policy, Completion<std::vector<Result<Enqueued>>> done);
  // Events are not spilled, and not sent again when the broker refuses them.
  void publish(std::vector<Job> events, const PressurePolicy& policy, Completion<std::vector<Result<Published>>> done);

  PressureWatch watch(std::function<void(const Pressure&)> changed);

  // Answers who waits with kUnavailable; the broker is not called any more. Not from a completion; from a watch's
  // callback it may be.
  void close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace bide::client
