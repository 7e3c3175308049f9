// ForeignDialect: lets Consumer take the jobs of another system.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/compat/foreign_system.h"
#include "brokers/rabbitmq/compat/foreign_topology.h"
#include "brokers/rabbitmq/dialect.h"
#include "core/job_ids.h"
#include "platform/random.h"

namespace bide::brokers::rabbitmq::compat {

class ForeignDialect : public Dialect {
 public:
  ForeignDialect(const Settings& settings, const ForeignSystem& system)
      : system_(system), topology_(settings, kFirstDeclaring) {}

  Status check_queue(std::string_view queue) const override { return system_.check_queue(queue); }
  std::string source(const std::string& queue) const override { return system_.source(queue); }
  bool ids_are_unique() const override { return false; }
  bool keeps_rejected() const override { return false; }

  Status declare(Connection& connection, const std::string& queue) override {
    return topology_.ensure(connection, system_.topology(queue));
  }
  void reconnected() override { topology_.reconnected(); }
  void channel_closed(ChannelNumber channel) override { topology_.channel_closed(channel); }
  void forget() override { topology_.forget(); }

  std::variant<ReceivedJob, Publication> receive(Delivery delivery, const std::string& queue, Time now) override;
  Result<Publication> enqueue(Connection* connection, Job job, std::int64_t stamp, Time now) override;
  Result<Departure> depart(Connection* connection, const ReceivedJob& job, const Outcome& outcome, std::int64_t stamp,
                           Time now) override;

  std::optional<Publication> hold(const ReceivedJob&, Milliseconds, std::int64_t) override { return std::nullopt; }

  // Declares what the message needs, and says how it is published. Of the consumer's thread, too.
  Result<Publication> prepare(Connection* connection, Send send);

 private:
  const ForeignSystem& system_;
  ForeignTopology topology_;
  core::JobIdSource ids_;
  platform::SystemRandom random_;
};

}  // namespace bide::brokers::rabbitmq::compat
