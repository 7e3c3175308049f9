// PendingReplies: the requests of one connection whose replies have not been fetched, and those who wait for them.
//
// A reply as a message: the correlation id is the id of the request; the body is the result. Of a request that is dead:
//
//   bide-error   what was said about it
//   bide-dead    why it is dead: exhausted, rejected ...      bide-fault   of the last attempt
//
// Safe to use from any thread.

#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "bide/inspector.h"
#include "brokers/rabbitmq/amqp_message.h"
#include "platform/keyed_hash.h"

namespace bide::brokers::rabbitmq {

AmqpMessage encode_reply(const JobId& id, const Outcome& outcome);

class PendingReplies {
 public:
  // Before the request is published. Forgotten when nobody has asked for the reply a while after `deadline`.
  void expect(const JobId& id, Time deadline, Time now);
  // It was not published.
  void forget(const JobId& id);

  // A reply to nothing that is expected is dropped: it is late, or a second one.
  void take(AmqpMessage reply);

  // False: no request of this connection, or its reply was fetched; `done` is not called then.
  bool watch(const JobId& id, Completion<JobInfo>& done);
  void give_up(const JobId& id);
  // Answers all that wait.
  void close(const Error& error);

  std::uint64_t dropped() const;

 private:
  struct Pending {
    Time deadline = {};
    std::optional<JobInfo> reply = {};
    Completion<JobInfo> done = {};
  };

  mutable std::mutex mutex_;  // Guards everything below.
  platform::KeyedMap<JobId, Pending> pending_;
  std::size_t sweep_at_ = 1024;
  std::uint64_t dropped_ = 0;
};

}  // namespace bide::brokers::rabbitmq
