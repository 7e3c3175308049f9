// NativeDialect: bide's own layout and messages (topology.h, job_message.h).

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/declared.h"
#include "brokers/rabbitmq/dialect.h"
#include "brokers/rabbitmq/stamps.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

class NativeDialect : public Dialect {
 public:
  // `reply_queue`: where replies to the requests of this process arrive.
  NativeDialect(const Settings& settings, Stamps& stamps, std::string reply_queue = {})
      : settings_(settings),
        names_(settings.prefix),
        reply_queue_(std::move(reply_queue)),
        stamps_(stamps),
        declared_(settings_, kDeclaring) {}

  Status check_queue(std::string_view queue) const override;
  std::string source(const std::string& queue) const override { return names_.queue(queue); }
  std::string dead_queue(const std::string& queue) const override { return names_.dead(queue); }
  bool ids_are_unique() const override { return true; }
  bool keeps_rejected() const override { return true; }  // Among the lost ones.

  Result<Publication> enqueue(Job job, std::int64_t stamp, Time now) const override;
  JobInfo dead_info(const AmqpMessage& message, const std::string&, const std::string& queue) const override {
    return rabbitmq::dead_info(message, queue);
  }
  Result<Publication> replay(AmqpMessage message, const std::string& key, const std::string& queue,
                             const ReplayOptions& options) const override;
  Publication bring_back(AmqpMessage message, const std::string& queue) const override;

  Status declare(Connection& connection, const std::string& queue) override {
    return declared_.ready(connection, queue);
  }
  void reconnected() override { declared_.reconnected(); }
  void channel_closed(ChannelNumber channel) override { declared_.channel_closed(channel); }
  void forget() override { declared_.forget(); }

  std::variant<ReceivedJob, Publication> receive(Delivery delivery, const std::string& queue, Time now) override;
  Result<Departure> depart(const ReceivedJob& job, const Outcome& outcome, std::int64_t stamp, Time now) override;
  std::optional<Publication> reply(const ReceivedJob& job, const Done& done) const override;
  std::optional<Publication> hold(const ReceivedJob& job, Milliseconds wait, std::int64_t stamp) override;

 private:
  // Of the dead set, where the settings say for how long.
  void expire_dead(Publication& publication) const;
  // Nothing: nobody waits for one.
  std::optional<Publication> reply_to(const JobMessage& message, const Outcome& outcome) const;

  const Settings settings_;
  const Names names_;
  const std::string reply_queue_;
  Stamps& stamps_;
  Declared declared_;
};

}  // namespace bide::brokers::rabbitmq
