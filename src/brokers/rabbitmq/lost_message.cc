#include "brokers/rabbitmq/lost_message.h"

#include <array>
#include <chrono>
#include <utility>

#include "brokers/rabbitmq/probe.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr Milliseconds kPatience{5000};

const std::string* text_header(const AmqpMessage& message, std::string_view name) {
  const Field* field = find_field(message.headers, name);
  return field != nullptr ? field->text() : nullptr;
}

// The last key of CC is where it wanted to go in the end.
std::string destination_of(const AmqpMessage& message) {
  const Field* cc = find_field(message.headers, "CC");
  if (cc != nullptr && cc->list() != nullptr && !cc->list()->empty()) {
    if (const std::string* key = cc->list()->back().text()) return *key;
  }
  const std::string* queue = text_header(message, "bide-queue");
  return queue != nullptr ? *queue : "";
}

}  // namespace

std::string describe_lost(const AmqpMessage& message) {
  if (message.type == kProbeType) return "a late probe of bide rabbitmq doctor";
  std::string text = message.message_id.empty() ? "a message without id" : "job " + message.message_id;
  if (!message.type.empty()) text += " of kind " + message.type;
  if (const std::string destination = destination_of(message); !destination.empty()) {
    text += ", on its way to " + destination;
  }
  if (const std::string* reason = text_header(message, "x-first-death-reason");
      reason != nullptr && *reason != "expired") {
    text += ", dead-lettered: " + *reason;
  }
  return text;
}

Result<std::string> first_lost(Connection& connection, ChannelNumber channel, const Names& names) {
  if (Status status = connection.open_channel(channel); !status) return status.error();
  if (Status status = connection.get(channel, names.lost(), false); !status) return status.error();
  const auto deadline = steady_clock::now() + kPatience;
  std::string text;
  while (true) {
    const Result<std::optional<Event>> event = connection.next_event();
    if (!event) return event.error();
    if (!event->has_value()) {
      if (steady_clock::now() >= deadline) break;
      std::array<platform::Readiness, 1> ready = {platform::Readiness{connection.descriptor(), true, false}};
      platform::wait_ready(ready, Milliseconds(500));
      continue;
    }
    if (std::holds_alternative<GetEmpty>(**event)) break;
    if (const ChannelClosed* closed = std::get_if<ChannelClosed>(&**event)) return closed->error;
    if (const Delivery* delivery = std::get_if<Delivery>(&**event)) {
      text = describe_lost(delivery->message);
      break;
    }
  }
  // What was not acknowledged goes back with the channel.
  if (Status status = connection.close_channel(channel); !status) return status.error();
  return text;
}

}  // namespace bide::brokers::rabbitmq
