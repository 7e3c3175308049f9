// Visits: what is in a queue, looked at by taking everything out without acknowledging it and giving it back: the
// server puts it where it was, in order. Messages are shown one by one as they arrive, and not kept.
//
// A quorum queue delivers to a consumer no more than its prefetch (2000 when there is none), so more consumers are added
// as they fill up. The end is known by counting: what the queue had when the visit began. When some of that does not come
// (it has expired meanwhile), a marker is put behind the last message and waited for.
//
// Two people who look at the same moment see the same, one after the other: a visitor holds a lock (a private queue of
// the server, gone with his connection) until everything is back.
//
// Used by one thread, with a connection of its own.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/stamps.h"

namespace bide::brokers::rabbitmq {

class Visits {
 public:
  // What was shown stays out until it is destroyed; then whatever was not removed is back in its place.
  class Visit {
   public:
    Visit(Visits& owner, std::string queue, std::string lock, ChannelNumber channel)
        : owner_(owner), queue_(std::move(queue)), lock_(std::move(lock)), channel_(channel) {}
    ~Visit();
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    Status remove(std::uint64_t tag);

   private:
    friend class Visits;
    Status pause();
    Status take_more();

    Visits& owner_;
    const std::string queue_;  // By its name on the server.
    const std::string lock_;
    const ChannelNumber channel_;
    std::uint32_t expected_ = 0;  // In the queue when the visit began.
    std::uint32_t shown_ = 0;
    std::uint32_t removed_ = 0;
    std::uint32_t prefetch_ = 0;  // Of all consumers.
  };
  // False: it has seen enough. It may remove what it was shown.
  using Visitor = std::function<bool(Visit& visit, std::uint64_t tag, AmqpMessage message)>;

  Visits(const Settings& settings, Stamps& stamps) : settings_(settings), stamps_(stamps) {}

  // Shows every message of the queue to the visitor, oldest first. Null: there is no such queue.
  Result<std::unique_ptr<Visit>> visit(const std::string& queue, const std::string& lock, const Visitor& visitor);
  // True, once, when after a visit there was more than expected: the server had given back what was acknowledged.
  bool take_left_over() { return std::exchange(left_over_, false); }

  // Of a queue on the server; zeros when it is not there.
  Result<QueueCounts> look_at(const std::string& queue);
  Result<std::uint32_t> purge(const std::string& queue);

 private:
  Status connect();
  Status lock(const std::string& name);
  Status write_marker(ChannelNumber channel, const std::string& queue, const std::string& text);

  const Settings settings_;
  Stamps& stamps_;
  std::unique_ptr<Connection> connection_;
  ChannelNumber last_channel_ = 1;
  bool left_over_ = false;
};

}  // namespace bide::brokers::rabbitmq
