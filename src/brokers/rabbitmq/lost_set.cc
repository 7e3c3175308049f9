#include "brokers/rabbitmq/lost_set.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "brokers/rabbitmq/probe.h"
#include "brokers/rabbitmq/stamps.h"
#include "core/job_rules.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

// Of those who look at the same time; no name of a bide queue begins with a dot.
constexpr std::string_view kLockName = ".lost";
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

// Of its way through delay queues: the AMQP queue at the end. Null: it was not on such a way.
const std::string* last_key(const AmqpMessage& message) {
  const Field* cc = find_field(message.headers, "CC");
  if (cc == nullptr || cc->list() == nullptr || cc->list()->empty()) return nullptr;
  return cc->list()->back().text();
}

// Has died in the delay queue of every step that its CC header names, which are all but the first.
bool has_taken_all_steps(const AmqpMessage& message, const Names& names) {
  const Field* const deaths = find_field(message.headers, "x-death");
  const FieldList* const died = deaths != nullptr ? deaths->list() : nullptr;
  const auto has_died_in = [&](const std::string& queue) {
    return died != nullptr && std::any_of(died->begin(), died->end(), [&](const Field& death) {
             const Field* const name = death.table() != nullptr ? find_field(*death.table(), "queue") : nullptr;
             return name != nullptr && name->text() != nullptr && *name->text() == queue;
           });
  };
  const FieldList& keys = *find_field(message.headers, "CC")->list();
  return std::all_of(keys.begin(), keys.end() - 1, [&](const Field& key) {
    const std::string* const text = key.text();
    const std::size_t step = text != nullptr ? text->find('>') : std::string::npos;
    // "3>!" is the way out.
    return step == std::string::npos || text->ends_with('!') ||
           has_died_in(names.prefix() + ".delay." + text->substr(step + 1));
  });
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
  if (std::string queue = bide_queue(last_key(message)); !queue.empty()) return queue;
  return bide_queue(death_text(message, "queue"));
}

}  // namespace

LostMessage lost_message_of(const AmqpMessage& message, const Names& names) {
  LostMessage lost;
  lost.id = message.message_id;
  lost.kind = message.type;
  lost.queue = queue_of(message, names);
  if (const std::string* destination = last_key(message)) lost.destination = *destination;
  // What has expired in a delay queue was on its way, as it should be.
  const std::string* reason = death_text(message, "reason");
  const std::string* where = death_text(message, "queue");
  const bool on_its_way =
      reason == nullptr || (*reason == "expired" && where != nullptr && !where->starts_with(names.queue("")));
  lost.why = on_its_way ? std::string(kNoWayToGo) : *reason;
  lost.bytes = message.body.size();
  const Field* due = find_field(message.headers, "bide-due");
  if (due != nullptr && due->number() != nullptr) {
    lost.is_due = Time(Milliseconds(*due->number())) <= wall_now();
  } else {
    // Messages of other systems do not say when. One that has not been through all steps of its delay was lost on its way.
    lost.is_due =
        lost.destination.empty() || (reason != nullptr && *reason == "expired" && has_taken_all_steps(message, names));
  }
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

Result<std::vector<LostSet::Moved>> LostSet::act(const Choice& chosen, const Action& action) {
  std::vector<Moved> moved;
  const auto browsed =
      browser_.browse(names_.lost(), names_.visit(kLockName), [&](Session& session, Delivery delivery) {
        LostMessage message = lost_message_of(delivery.message, names_);
        if (!chosen(message)) return true;
        Status status = action(session, std::move(delivery), message);
        moved.push_back({std::move(message), std::move(status)});
        return true;
      });
  if (!browsed && moved.empty()) return browsed.error();
  return moved;
}

Result<std::vector<LostMessage>> LostSet::list() {
  std::vector<LostMessage> all;
  const auto browsed = browser_.browse(names_.lost(), names_.visit(kLockName), [&](Session&, const Delivery& delivery) {
    all.push_back(lost_message_of(delivery.message, names_));
    return true;
  });
  if (!browsed) return browsed.error();
  return all;
}

Result<std::vector<LostSet::Moved>> LostSet::requeue(const Choice& chosen, const std::string& to) {
  Status hopeless;  // Nobody waits for a server that is away once more for each message.
  return act(chosen, [&](Session& session, Delivery delivery, const LostMessage& message) {
    const std::string queue = to.empty() ? message.queue : to;
    Status status = hopeless;
    if (queue.empty()) status = Error{ErrorCode::kInvalidArgument, "nobody knows which queue it belongs to"};
    if (status) status = publisher_.publish_and_wait(dialect_.bring_back(std::move(delivery.message), queue));
    const bool away = !status && (status.error().code == ErrorCode::kUnavailable ||
                                  status.error().code == ErrorCode::kUnconfirmed);
    if (away) hopeless = Error{ErrorCode::kUnavailable, status.error().message};
    if (!status) return status;
    // Only now: it is in two places for a moment, never in none.
    Status removed = session.remove(delivery.tag);
    return removed ? removed : Status(unconfirmed(removed.error()));
  });
}

Result<std::vector<LostSet::Moved>> LostSet::remove(const Choice& chosen) {
  return act(chosen, [](Session& session, const Delivery& delivery, const LostMessage&) {
    return session.remove(delivery.tag);
  });
}

Result<std::size_t> LostSet::bring_back(const std::string& queue) {
  const Result<QueueCounts> lost = browser_.look_at(names_.lost());
  if (!lost) return lost.error();
  if (lost->messages == 0) return std::size_t{0};
  // Not what the server has given up or was told to take: it would come back for ever.
  const std::string source = dialect_.source(queue);
  const auto is_its = [&](const LostMessage& each) {
    // Messages of another system name no queue of bide's, and bring deaths of their own along.
    if (of_others_) return each.destination == source && each.is_due;
    return each.queue == queue && each.why == kNoWayToGo;
  };
  const Result<std::vector<Moved>> moved =
      requeue([&](const LostMessage& each) { return is_its(each) && (declares_ || each.is_due); }, queue);
  if (!moved) return moved.error();
  std::size_t brought = 0;
  for (const Moved& each : *moved) brought += each.status ? 1 : 0;
  return brought;
}

}  // namespace bide::brokers::rabbitmq
