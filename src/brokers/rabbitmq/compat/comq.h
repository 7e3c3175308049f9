// ComQ (0.6 to 0.12), request/reply, events and tasks for Node: its queues and messages.
//
//   request  --> (default exchange) --> queue Q --> worker --result--> (default exchange) --> the queue in reply-to
//   task     --> (default exchange) --> queue Q --> worker
//   event    --> fanout exchange E  --> queue E..G of each group G --> worker
//
// A queue with two dots in its name is that of a group of consumers; a job for "E.." is an event for all groups of E.
// The bytes of a message are the body of the job. How often it has failed is in its header x-attempt: a failed attempt
// is published again with the number raised, and the sixth failure is the last one.
//
// ComQ publishes a failed event to its exchange, so that every group has it once more. Here the copy goes to the queue
// it came from and to no other.

#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brokers/rabbitmq/compat/foreign_dialect.h"

namespace bide::brokers::rabbitmq::compat {

struct ComqOptions {
  std::optional<RetryPolicy> steps = {};  // Instead of six attempts at once.
  std::string kind = {};                  // Of every job; empty: the name of its queue, or of its exchange.
  std::set<std::string> queues = {};      // Known before anybody has used them.
  bool keep_dead = false;                 // In the dead set, instead of rejecting them.

  // From name=value pairs of a URL.
  static Result<ComqOptions> parse(const std::vector<std::pair<std::string, std::string>>& pairs);
};

class Comq : public ForeignSystem {
 public:
  // Dead jobs that are kept are in queues of bide's own.
  Comq(ComqOptions options, Names names) : options_(std::move(options)), names_(std::move(names)) {}

  Status check_queue(std::string_view queue) const override;
  std::string source(const std::string& queue) const override { return queue; }
  std::string dead_queue(const std::string& queue) const override { return names_.dead("comq." + queue); }
  Topology topology(const std::string& queue) const override;
  bool clients_declare() const override { return true; }
  std::set<std::string> known_queues() const override { return options_.queues; }
  Result<ReceivedJob> receive(AmqpMessage message, std::string key, const std::string& queue) const override;
  Send send_unreadable(AmqpMessage message, const std::string& key, const std::string& queue,
                       std::string_view why) const override;
  bool carries_requests() const override { return true; }
  Result<Send> enqueue(const Job& job, Time now) const override;
  std::optional<Send> reply(const ReceivedJob& job, const Done& outcome) const override;
  Result<std::optional<Send>> retry(const ReceivedJob& job, const RetryAt& outcome, Time now) const override;
  bool rejects_dead() const override { return !options_.keep_dead; }
  Send bury(const ReceivedJob& job, const Dead& outcome, Time now) const override;
  JobInfo dead_info(const AmqpMessage& message, const std::string& key, const std::string& queue) const override;
  Result<Send> replay(AmqpMessage message, const std::string& key, const std::string& queue,
                      const ReplayOptions& options) const override;

 private:
  RetryPolicy policy() const;
  Job job_of(const AmqpMessage& message, const std::string& queue) const;
  Send to_dead(AmqpMessage message, const std::string& queue) const;

  const ComqOptions options_;
  const Names names_;
};

}  // namespace bide::brokers::rabbitmq::compat
