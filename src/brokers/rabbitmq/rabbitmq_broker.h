// RabbitmqBroker: jobs on a RabbitMQ server or cluster. What is declared there is in topology.h, how a job travels in
// job_message.h, how waiting works in delay_path.h.
//
// Three connections, each with a thread that owns it: one publishes (publisher.h), one consumes (consumer.h, from the
// first subscription on), one looks around (queue_browser.h, from the first question on).

#pragma once

#include <cstdint>
#include <memory>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/consumer.h"
#include "brokers/rabbitmq/dialect.h"
#include "brokers/rabbitmq/publisher.h"

namespace bide::brokers::rabbitmq {

class RabbitmqBroker : public Broker, public Inspector {
 public:
  // Connects, so that a wrong password or a missing virtual host is known at once, in the server's words. `dialect` is that
  // of another system; null: bide's own.
  static Result<std::unique_ptr<RabbitmqBroker>> open(Settings settings, std::unique_ptr<Dialect> dialect = nullptr);
  // Completes what has been asked for and gives back the leases of this process.
  ~RabbitmqBroker() override;

  // Broker.
  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  Pressure pressure() const override;
  Capabilities capabilities() const override;

  // Inspector. What needs to find a job in the middle of a queue is kUnsupported; see capabilities().
  void queues(Completion<std::vector<QueueInfo>> done) override;
  void find(JobId id, Completion<JobInfo> done) override;
  void list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) override;
  void explain(JobId id, Completion<Explanation> done) override;
  void audit(Completion<AuditReport> done) override;
  GiveUp watch(JobId id, Completion<JobInfo> done) override;
  void cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) override;
  void reschedule(JobId id, Time due, Completion<void> done) override;
  void replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) override;
  void pause(std::string queue, bool paused, Completion<void> done) override;
  void purge(std::string queue, Completion<std::uint64_t> done) override;

  struct Stats {
    Publisher::Stats publishing;
    Consumer::Stats consuming;
    std::uint64_t dropped_replies = 0;  // Nobody waited for them any more.
  };
  Stats stats() const;

 private:
  struct Parts;
  explicit RabbitmqBroker(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace bide::brokers::rabbitmq
