// ForeignDead: the dead jobs in a queue of another system. Looked at by taking everything out without acknowledging it
// and giving it back: the server puts it where it was. While somebody looks, others do not see those messages.
//
// A message without an id of bide's is named by its content: the same message has the same id each time.
//
// Used by one thread; each call has a connection of its own.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bide/inspector.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/compat/foreign_system.h"
#include "brokers/rabbitmq/connection.h"

namespace bide::brokers::rabbitmq::compat {

class ForeignDead {
 public:
  using Sender = std::function<Status(Send)>;  // Returns when it is confirmed.

  ForeignDead(const Settings& settings, const ForeignSystem& dialect, Sender sender);

  // Newest first, as they came into the queue. The cursor is that of a page before, or empty.
  Result<JobPage> list(const std::vector<std::string>& queues, const JobFilter& filter, const std::string& cursor,
                       std::size_t limit);
  // kNotFound: it is not there.
  Result<JobInfo> find(const std::vector<std::string>& queues, JobId id);
  // One status for each id, in order. A replayed one is acknowledged when its copy is confirmed.
  Result<std::vector<Status>> replay(const std::vector<std::string>& queues, const std::vector<JobId>& ids,
                                     const ReplayOptions& options);
  Result<std::vector<Status>> remove(const std::vector<std::string>& queues, const std::vector<JobId>& ids);

  // Ready messages and consumers of an AMQP queue; zeros when it is not there.
  Result<QueueCounts> count(const std::string& amqp_queue);
  Result<std::uint32_t> purge(const std::string& amqp_queue);

 private:
  // True: the message is dealt with and must go.
  using Visitor = std::function<bool(const JobInfo& info, const Delivery& delivery)>;
  Status visit(const std::string& queue, const Visitor& visitor);

  const Settings settings_;
  const ForeignSystem& dialect_;
  const Sender sender_;
};

}  // namespace bide::brokers::rabbitmq::compat
