#include "conformance/recorder.h"

#include <cstdlib>
#include <stdexcept>

namespace bide::conformance {

std::chrono::milliseconds patience() {
  static const std::chrono::milliseconds chosen = [] {
    const char* text = std::getenv("BIDE_PATIENCE_MS");
    return std::chrono::milliseconds(text != nullptr ? std::atol(text) : 60'000);
  }();
  return chosen;
}

struct Recorder::Shared {
  explicit Shared(std::function<Time()> clock) : now(std::move(clock)) {}

  const std::function<Time()> now;
  std::condition_variable arrived;
  std::mutex mutex;  // Guards everything below.
  std::vector<Arrival> arrivals;
  std::size_t taken = 0;

  bool wait_for(std::unique_lock<std::mutex>& lock, std::size_t count) {
    return arrived.wait_for(lock, patience(), [&] { return arrivals.size() >= count; });
  }
};

Recorder::Recorder(std::function<Time()> now) : shared_(std::make_shared<Shared>(std::move(now))) {}

LeaseSink Recorder::sink() const {
  return [shared = shared_](std::vector<Lease> leases) {
    const Time at = shared->now();
    std::lock_guard lock(shared->mutex);
    for (Lease& lease : leases) shared->arrivals.push_back({std::move(lease), at});
    shared->arrived.notify_all();
  };
}

bool Recorder::wait_for(std::size_t count) const {
  std::unique_lock lock(shared_->mutex);
  return shared_->wait_for(lock, count);
}

Lease Recorder::take() {
  std::unique_lock lock(shared_->mutex);
  if (!shared_->wait_for(lock, shared_->taken + 1)) {
    throw std::runtime_error("no lease arrived; " + std::to_string(shared_->taken) + " had arrived before");
  }
  return shared_->arrivals[shared_->taken++].lease;
}

std::vector<Lease> Recorder::take(std::size_t count) {
  std::vector<Lease> leases;
  while (leases.size() < count) leases.push_back(take());
  return leases;
}

std::vector<Arrival> Recorder::arrivals() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->arrivals;
}

std::vector<JobId> Recorder::ids() const {
  std::vector<JobId> ids;
  for (const Arrival& arrival : arrivals()) ids.push_back(arrival.lease.job.id);
  return ids;
}

std::size_t Recorder::count() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->arrivals.size();
}

std::size_t Recorder::count_before(Time limit) const {
  std::size_t count = 0;
  for (const Arrival& arrival : arrivals()) count += arrival.at < limit ? 1 : 0;
  return count;
}

}  // namespace bide::conformance
