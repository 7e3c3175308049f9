// QueueBrowser: what is in a queue, browsed by taking everything out without acknowledging it and giving it back: the
// server puts it where it was, in order. Messages are shown one by one as they arrive, and not kept.
//
// A quorum queue delivers to a consumer no more than its prefetch (2000 when there is none), so more consumers are added
// as they fill up. The end is known by counting: what the queue had at the beginning. When some of that does not come (it
// has expired meanwhile), a marker is put behind the last message and waited for; not into queues of other systems, where
// silence is taken for the end.
//
// Two who browse at the same moment see the same, one after the other: a session holds a lock (a private queue of the
// server, gone with its connection) until everything is back.
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

class QueueBrowser {
 public:
  // What was shown stays out until it is destroyed; then whatever was not removed is back in its place.
  class Session {
   public:
    Session(QueueBrowser& owner, std::string queue, std::string lock, ChannelNumber channel)
        : owner_(owner), queue_(std::move(queue)), lock_(std::move(lock)), channel_(channel) {}
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    Status remove(std::uint64_t tag);

   private:
    friend class QueueBrowser;
    Status pause();
    Status take_more();

    QueueBrowser& owner_;
    const std::string queue_;  // By its name on the server.
    const std::string lock_;
    const ChannelNumber channel_;
    std::uint32_t expected_ = 0;  // In the queue when the session began.
    std::uint32_t shown_ = 0;
    std::uint32_t removed_ = 0;
    std::uint32_t prefetch_ = 0;  // Of all consumers.
  };
  // False: it has seen enough. It may remove what it was shown.
  using Reader = std::function<bool(Session& session, Delivery delivery)>;

  QueueBrowser(const Settings& settings, Stamps& stamps) : settings_(settings), stamps_(stamps) {}

  // Shows every message of the queue to the reader, oldest first. Null: there is no such queue.
  Result<std::unique_ptr<Session>> browse(const std::string& queue, const std::string& lock, const Reader& reader);
  // True, once, when after a session there was more than expected: the server had given back what was acknowledged.
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
