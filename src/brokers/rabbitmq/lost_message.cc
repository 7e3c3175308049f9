#include "brokers/rabbitmq/lost_message.h"

#include <array>
#include <chrono>
#include <utility>

#include "brokers/rabbitmq/probe.h"
#include "core/job_rules.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr Milliseconds kPatience{5000};

const std::string* text_header(const AmqpMessage& message, std::string_view name) {
  const Field* field = find_field(message.headers, name);
  return field != nullptr ? field->text() : nullptr;
}

// Of the newest death; null when there was none.
const std::string* death_text(const AmqpMessage& message, std::string_view name) {
  const Field* deaths = find_field(message.headers, "x-death");
  if (deaths == nullptr || deaths->list() == nullptr || deaths->list()->empty()) return nullptr;
  const FieldTable* newest = deaths->list()->front().table();
  const Field* field = newest != nullptr ? find_field(*newest, name) : nullptr;
  return field != nullptr ? field->text() : nullptr;
}

// Where it wanted to go in the end, or was when the server gave it up.
std::string queue_of(const AmqpMessage& message, const Names& names) {
  if (const std::string* queue = text_header(message, "bide-queue"); queue != nullptr && core::is_name(*queue)) {
    return *queue;
  }
  const auto bide_queue = [&](const std::string* name) -> std::string {
    const std::string before = names.queue("");
    if (name == nullptr || !name->starts_with(before)) return "";
    return core::is_name(name->substr(before.size())) ? name->substr(before.size()) : "";
  };
  const Field* cc = find_field(message.headers, "CC");
  if (cc != nullptr && cc->list() != nullptr && !cc->list()->empty()) {
    if (std::string queue = bide_queue(cc->list()->back().text()); !queue.empty()) return queue;
  }
  return bide_queue(death_text(message, "queue"));
}

}  // namespace

LostMessage lost_message_of(const AmqpMessage& message, const Names& names) {
  LostMessage lost;
  lost.id = message.message_id;
  lost.kind = message.type;
  lost.queue = queue_of(message, names);
  // What has expired in a delay queue was on its way, as it should be.
  const std::string* reason = death_text(message, "reason");
  const std::string* where = death_text(message, "queue");
  const bool on_its_way =
      reason == nullptr || (*reason == "expired" && where != nullptr && !where->starts_with(names.queue("")));
  lost.why = on_its_way ? std::string(kNoWayToGo) : *reason;
  lost.bytes = message.body.size();
  return lost;
}

std::string describe_lost(const AmqpMessage& message, const Names& names) {
  if (message.type == kProbeType) return "a late probe of bide rabbitmq doctor";
  const LostMessage lost = lost_message_of(message, names);
  std::string text = lost.id.empty() ? "a message without id" : "job " + lost.id;
  if (!lost.kind.empty()) text += " of kind " + lost.kind;
  if (!lost.queue.empty()) text += ", on its way to " + names.queue(lost.queue);
  if (lost.why != kNoWayToGo) text += ", dead-lettered: " + lost.why;
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
      text = describe_lost(delivery->message, names);
      break;
    }
  }
  // What was not acknowledged goes back with the channel.
  if (Status status = connection.close_channel(channel); !status) return status.error();
  return text;
}

}  // namespace bide::brokers::rabbitmq
