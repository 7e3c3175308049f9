// DeadSet: the dead jobs of a deployment, one queue on the server for each bide queue. Looked at by taking everything
// out without acknowledging it and giving it back: the server puts it where it was, in order.
//
// Two people who look at the same moment see the same, one after the other: a visitor holds a lock (a private queue of
// the server, gone with his connection) until everything is back. The end is recognised by a marker that the visitor
// himself has put behind the last job.
//
// Used by one thread, with a connection of its own. `queues` are names of bide queues; those that never had a dead job
// are no mistake.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bide/inspector.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/publisher.h"
#include "brokers/rabbitmq/stamps.h"

namespace bide::brokers::rabbitmq {

class DeadSet {
 public:
  DeadSet(const Settings& settings, Publisher& publisher, Stamps& stamps);
  ~DeadSet();

  // Newest first, over all the given queues. The cursor is that of a page before, or empty.
  Result<JobPage> list(const std::vector<std::string>& queues, const JobFilter& filter, const std::string& cursor,
                       std::size_t limit);
  // kNotFound: it is not in the dead set.
  Result<JobInfo> find(const std::vector<std::string>& queues, JobId id);

  // One status for each id, in order; kNotFound: it is not in the dead set. Each is published again, in the order of
  // the ids, and taken out of the dead set when that is confirmed.
  Result<std::vector<Status>> replay(const std::vector<std::string>& queues, const std::vector<JobId>& ids,
                                     const ReplayOptions& options);
  Result<std::vector<Status>> remove(const std::vector<std::string>& queues, const std::vector<JobId>& ids);

  // Jobs that became due while their queue did not exist are brought from the lost ones to that queue, which is there
  // again. How many.
  Result<std::size_t> bring_back(const std::string& queue);

  // Of a queue on the server, by its own name; zeros when it is not there.
  Result<QueueCounts> look_at(const std::string& queue);
  Result<std::uint32_t> purge(const std::string& queue);

 private:
  struct Visit;
  using Visitor = std::function<void(std::uint64_t tag, AmqpMessage message)>;

  Status connect();
  Status lock(const std::string& name);
  // Shows every message of the queue to the visitor, oldest first. They stay out until the visit ends; then those that
  // were not acknowledged are back in their places. Null: there is no such queue.
  Result<std::unique_ptr<Visit>> visit(const std::string& queue, const Visitor& visitor);
  Result<std::unique_ptr<Visit>> visit(const std::string& name, const std::string& lock_name, const Visitor& visitor);
  // Removes again what the server has given back though it was acknowledged.
  void remove_left_over(const std::vector<std::string>& queues, const std::vector<JobId>& ids);
  Publication replayed(AmqpMessage message, const std::string& queue, const ReplayOptions& options);

  const Settings settings_;
  const Names names_;
  Publisher& publisher_;
  Stamps& stamps_;
  std::unique_ptr<Connection> connection_;
  ChannelNumber last_channel_ = 1;
  bool left_over_ = false;  // After the last visit there was more than expected.
};

}  // namespace bide::brokers::rabbitmq
