// Sneakers (2.x) and Kicks (3.x) with the Maxretry handler: queues as their workers declare them.
//
//   exchange "sneakers" --Q--> queue Q --rejected--> Q-retry (waits its TTL) --> Q-retry-requeue --> queue Q
//                                |
//                                +-- more failures than retry_max_times: --> Q-error
//
// The bytes of a message are the body of the job. How often it has failed is in the server's own x-death header: the
// sum over its entries for Q. A failed attempt is a rejected message, and its wait is the TTL of Q-retry.
//
// With a policy of its own (steps) a failed job waits in bide's delay queues instead, as long as the policy says, and
// comes back to Q with an entry in x-death as if Q had rejected it: workers of both kinds go on counting together.

#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "brokers/rabbitmq/compat/foreign_dialect.h"

namespace bide::brokers::rabbitmq::compat {

struct SneakersOptions {
  std::string exchange = "sneakers";
  std::uint32_t retry_max_times = 5;
  Milliseconds retry_timeout{60'000};     // The TTL of Q-retry, where it is not there yet.
  // Instead of Q-retry, Q-error and Q-retry-requeue; and of "#", by which Q is bound to the last one.
  std::string retry_exchange = {};
  std::string retry_error_exchange = {};
  std::string retry_requeue_exchange = {};
  std::string retry_routing_key = {};
  bool durable = true;                    // Exchanges and queues.
  std::optional<RetryPolicy> steps = {};  // Instead of both.
  bool error_in_body = false;             // Error records as until 2.11.
  std::string kind = {};                  // Of every job; empty: the name of its queue.
  std::set<std::string> queues = {};      // Known before anybody has used them.

  // From name=value pairs of a URL.
  static Result<SneakersOptions> parse(const std::vector<std::pair<std::string, std::string>>& pairs);
};

// How often a queue has rejected the message, by its x-death header; and by a copy that bide has made.
std::uint32_t failures_of(const FieldTable& headers, const std::string& queue);

class Sneakers : public ForeignSystem {
 public:
  explicit Sneakers(SneakersOptions options);

  Status check_queue(std::string_view queue) const override;
  std::string source(const std::string& queue) const override { return queue; }
  std::string dead_queue(const std::string& queue) const override { return error_name(queue); }
  Topology topology(const std::string& queue) const override;
  // A job for a queue that is not there is an error.
  bool clients_declare() const override { return false; }
  std::set<std::string> known_queues() const override { return options_.queues; }
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
  // Each names an exchange and the queue that is bound to it.
  std::string retry_name(const std::string& queue) const;
  std::string error_name(const std::string& queue) const;
  std::string requeue_name(const std::string& queue) const;  // An exchange only.
  // Of a message in an error queue, which several queues may share; its key tells then.
  std::string owner_of(const std::string& key, const std::string& queue) const;
  RetryPolicy policy() const;
  std::string kind_of(const AmqpMessage& message, const std::string& queue) const;

  const SneakersOptions options_;
};

}  // namespace bide::brokers::rabbitmq::compat
