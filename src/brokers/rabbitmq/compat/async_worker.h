// async-worker (0.0.7), a job library for Clojure: its queues and messages, for one namespace NS.
//
//   exchange NS_exchange --> NS_instant_queue --> worker --failed--> NS_delay_queue_<2^n · timeout>_ms --+
//                                 ^                 |                                                    |
//                                 +-----------------)----------------------------------------------------+
//                                                   +--no retries left--> NS_dead_letter_queue
//
// A message is a map in Nippy (async_worker_message.h). The job's name is the kind, with ':' for the '/' of a
// namespace; its arguments are the body, as EDN (application/edn), or as they are when they hold something that bide
// cannot read (application/x-nippy). Each job says itself how often and after which wait it is tried again.

#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "brokers/rabbitmq/compat/async_worker_message.h"
#include "brokers/rabbitmq/compat/foreign_dialect.h"

namespace bide::brokers::rabbitmq::compat {

inline constexpr std::string_view kEdnType = "application/edn";
inline constexpr std::string_view kNippyType = "application/x-nippy";

struct AsyncWorkerOptions {
  std::string name = {};        // The namespace, in snake_case.
  std::uint32_t retry_max = 5;  // Of jobs that are enqueued here without a policy of their own.
  Milliseconds retry_timeout{1000};

  // From name=value pairs of a URL.
  static Result<AsyncWorkerOptions> parse(const std::vector<std::pair<std::string, std::string>>& pairs);
};

class AsyncWorker : public ForeignSystem {
 public:
  explicit AsyncWorker(AsyncWorkerOptions options);

  // "default" and the namespace both mean its one queue.
  Status check_queue(std::string_view queue) const override;
  std::string source(const std::string& queue) const override;
  std::string dead_queue(const std::string& queue) const override;
  Topology topology(const std::string& queue) const override;
  bool clients_declare() const override { return true; }
  std::set<std::string> known_queues() const override { return {options_.name}; }
  Result<ReceivedJob> receive(AmqpMessage message, std::string key, const std::string& queue) const override;
  Send send_unreadable(AmqpMessage message, const std::string& key, const std::string& queue,
                       std::string_view why) const override;
  Result<Send> enqueue(const Job& job, Time now) const override;
  Result<std::optional<Send>> retry(const ReceivedJob& job, const RetryAt& outcome, Time now) const override;
  Send bury(const ReceivedJob& job, const Dead& outcome, Time now) const override;
  JobInfo dead_info(const AmqpMessage& message, const std::string& key, const std::string& queue) const override;
  Result<Send> replay(AmqpMessage message, const std::string& key, const std::string& queue,
                      const ReplayOptions& options) const override;

 private:
  std::string exchange() const { return options_.name + "_exchange"; }
  std::string instant_queue() const { return options_.name + "_instant_queue"; }
  std::string dead_letter_queue() const { return options_.name + "_dead_letter_queue"; }
  // One queue of the namespace and its binding.
  Topology one_queue(const std::string& name, FieldTable arguments) const;
  Topology delay_queue(std::int64_t ttl) const;

  const AsyncWorkerOptions options_;
};

}  // namespace bide::brokers::rabbitmq::compat
