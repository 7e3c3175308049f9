// DeadSet: the dead jobs of a deployment, one queue on the server for each bide queue, looked at by visits (visits.h).
//
// Used by one thread. `queues` are names of bide queues; those that never had a dead job are no mistake.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bide/inspector.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/publisher.h"
#include "brokers/rabbitmq/stamps.h"
#include "brokers/rabbitmq/visits.h"

namespace bide::brokers::rabbitmq {

class DeadSet {
 public:
  DeadSet(const Settings& settings, Visits& visits, Publisher& publisher, Stamps& stamps);

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

 private:
  Result<std::unique_ptr<Visits::Visit>> visit(const std::string& queue, const Visits::Visitor& visitor);
  // Removes again what the server has given back though it was acknowledged.
  void remove_left_over(const std::vector<std::string>& queues, const std::vector<JobId>& ids);
  Publication replayed(AmqpMessage message, const std::string& queue, const ReplayOptions& options);

  const Names names_;
  Visits& visits_;
  Publisher& publisher_;
  Stamps& stamps_;
};

}  // namespace bide::brokers::rabbitmq
