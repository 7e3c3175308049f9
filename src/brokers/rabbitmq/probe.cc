#include "brokers/rabbitmq/probe.h"

#include <array>
#include <chrono>
#include <map>
#include <utility>

#include "brokers/rabbitmq/connection.h"
#include "platform/local_socket.h"
#include "platform/random.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr ChannelNumber kChannel = 1;

struct Probing {
  std::unique_ptr<Connection> connection;
  std::string queue;
};

// A connection with a private queue and confirms.
Result<Probing> start(const Settings& settings) {
  Result<std::unique_ptr<Connection>> connection = Connection::open(settings, "probe");
  if (!connection) return connection.error();
  Probing probing{std::move(*connection), {}};
  if (Status status = probing.connection->open_channel(kChannel); !status) return status.error();
  Result<std::string> queue = probing.connection->declare_private_queue(kChannel);
  if (!queue) return queue.error();
  probing.queue = std::move(*queue);
  if (Status status = probing.connection->confirm_select(kChannel); !status) return status.error();
  return probing;
}

// The next event, or nothing when the time is over.
Result<std::optional<Event>> next_event(Connection& connection, steady_clock::time_point deadline) {
  while (true) {
    Result<std::optional<Event>> event = connection.next_event();
    if (!event || event->has_value()) return event;
    const auto left = std::chrono::ceil<Milliseconds>(deadline - steady_clock::now());
    if (left <= Milliseconds(0)) return event;
    std::array<platform::Readiness, 1> ready = {platform::Readiness{connection.descriptor(), true, false}};
    platform::wait_ready(ready, std::min(left, Milliseconds(500)));
  }
}

}  // namespace

Result<std::optional<std::string>> why_blocked(const Settings& settings, Milliseconds patience) {
  Result<Probing> probing = start(settings);
  if (!probing) return probing.error();
  AmqpMessage message;
  message.type = kProbeType;
  const auto deadline = steady_clock::now() + patience;
  // Under an alarm the server still takes the first message of a connection, and only then stops reading from it.
  for (int confirmed = 0; confirmed < 2; ++confirmed) {
    if (Status status = probing->connection->publish(kChannel, "", probing->queue, message, true); !status) {
      return status.error();
    }
    bool answered = false;
    while (!answered) {
      const Result<std::optional<Event>> event = next_event(*probing->connection, deadline);
      if (!event) return event.error();
      if (!event->has_value()) {
        return std::optional<std::string>("it did not confirm a message in " + std::to_string(patience.count()) +
                                          " ms");
      }
      if (const Blocked* blocked = std::get_if<Blocked>(&**event)) return std::optional(blocked->reason);
      answered = std::holds_alternative<Confirm>(**event);
    }
  }
  return std::optional<std::string>();
}

Result<std::vector<bool>> pass_through(const Settings& settings, const std::vector<DelayProbe>& probes,
                                       Milliseconds patience) {
  std::vector<bool> passed(probes.size(), false);
  if (probes.empty()) return passed;
  Result<Probing> probing = start(settings);
  if (!probing) return probing.error();
  Connection& connection = *probing->connection;
  if (Status status = connection.consume(kChannel, {.queue = probing->queue, .tag = "probe", .no_ack = true});
      !status) {
    return status.error();
  }
  platform::SystemRandom random;
  const std::string secret = "bide-probe-" + std::to_string(random.next()) + "-";
  std::map<std::string, std::size_t> waiting;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const std::string key = secret + std::to_string(i);
    if (Status status = connection.bind(kChannel, {probes[i].next, probing->queue, key, false}); !status) {
      return status.error();
    }
    AmqpMessage message;
    message.type = kProbeType;
    message.message_id = key;
    message.expiration = "1";
    message.headers = {{"CC", FieldList{Field(key)}}};
    if (Status status = connection.publish(kChannel, "", probes[i].queue, message, true); !status)
      return status.error();
    waiting[key] = i;
  }
  const auto deadline = steady_clock::now() + patience;
  while (!waiting.empty()) {
    const Result<std::optional<Event>> event = next_event(connection, deadline);
    if (!event) return event.error();
    if (!event->has_value()) break;
    if (const ChannelClosed* closed = std::get_if<ChannelClosed>(&**event)) return closed->error;
    const Delivery* delivery = std::get_if<Delivery>(&**event);
    if (delivery == nullptr) continue;
    const auto found = waiting.find(delivery->message.message_id);
    if (found == waiting.end()) continue;
    passed[found->second] = true;
    waiting.erase(found);
  }
  return passed;
}

}  // namespace bide::brokers::rabbitmq
