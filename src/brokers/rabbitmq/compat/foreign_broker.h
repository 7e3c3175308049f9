// ForeignBroker: jobs of another system on RabbitMQ, with that system's own queues and messages. Opened by
// amqp://…?compat=sneakers or ?compat=async-worker.

#pragma once

#include <memory>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "brokers/rabbitmq/amqp_url.h"

namespace bide::brokers::rabbitmq::compat {

class ForeignBroker : public Broker, public Inspector {
 public:
  // `settings.compat` names the dialect. kInvalidArgument: one of its options is wrong.
  static Result<std::unique_ptr<ForeignBroker>> open(const Settings& settings);
  ~ForeignBroker() override;

  // Broker.
  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  Pressure pressure() const override;
  Capabilities capabilities() const override;

  // Inspector: counts, and the dead. The rest is kUnsupported; see capabilities(). Queues are those that this process
  // has used, and those named by queues= in the URL.
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

 private:
  struct Parts;
  explicit ForeignBroker(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace bide::brokers::rabbitmq::compat
