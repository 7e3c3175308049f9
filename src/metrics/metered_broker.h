// MeteredBroker: a broker that counts what goes through it. What others do with the same broker, past this process, is
// not seen here; the gauges of queues are of everybody's jobs.

#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/forwarding_broker.h"
#include "metrics/job_history.h"
#include "metrics/metrics.h"
#include "metrics/running_attempts.h"
#include "metrics/worker_table.h"
#include "platform/clock.h"

namespace bide::metrics {

// Of a job whose lease was given before this process began.
inline constexpr std::string_view kUnknownQueue = "(unknown)";

class MeteredBroker : public core::ForwardingBroker {
 public:
  MeteredBroker(std::shared_ptr<Broker> broker, std::shared_ptr<Metrics> metrics,
                platform::Clock& clock = platform::real_clock());

  JobHistory& history() const { return recorder_->history; }
  const WorkerTable& workers() const { return recorder_->workers; }

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;

 private:
  Broker& next_broker() const override { return *broker_; }

  // Apart from the broker, because its completions may still run when this one is gone.
  struct Recorder {
    Recorder(std::shared_ptr<Metrics> kept, platform::Clock& read) : metrics(std::move(kept)), clock(read) {}

    const std::shared_ptr<Metrics> metrics;
    platform::Clock& clock;
    JobHistory history;
    WorkerTable workers;
    RunningAttempts running;

    Time wall() const { return Time(Milliseconds(clock.now().wall_us / 1000)); }
    void begin(const std::vector<Lease>& leases, const std::shared_ptr<WorkerTable::Worker>& worker);
    void end(const LeaseRef& lease, OutcomeLabel outcome, const platform::Instant& now);
  };

  const std::shared_ptr<Broker> broker_;
  const std::shared_ptr<Recorder> recorder_;
};

}  // namespace bide::metrics
