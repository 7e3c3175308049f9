// Events: published to a topic, and handled once by each group that is bound to it.
//
//   bide::bind(client, {.queue = "billing", .patterns = {"order.*"}}).value();   // Once is enough: bindings are durable.
//
//   bide::Worker worker(client, {.queues = {"billing"}});                        // As many as you like share the group.
//   worker.handle("order.created", [](const bide::Job& event) { ... });          // The kind is the topic,
//   worker.handle("order.*", [](const bide::Job& event) { ... });                // or matches it.
//
//   client.publish("order.created", "{\"id\": 42}").value().groups;              // 1. With 0 nobody has it.
//
// A group is a queue with a binding, and an event in it is a job: retries, the dead set, pause and the rest are as always.
// The group keeps what it has not handled while no worker is there, within the limits of its binding.
//
// A subscriber without a name has a group of its own for as long as it lives:
//
//   auto group = bide::TemporaryGroup::open(client, {"order.#"}).value();
//   bide::Worker worker(client, {.queues = {group.queue()}});

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bide/client.h"
#include "bide/inspector.h"

namespace bide {

// The header of an event's job that has the event's id, which is the same in every group.
inline constexpr std::string_view kEventIdHeader = "bide-event-id";

// The calls of Inspector, waited for.
Status bind(const Client& client, Binding binding);
Status unbind(const Client& client, std::string queue);
Result<std::vector<Binding>> bindings(const Client& client);

// A group with a name that nobody else has. Removed with what waits in it when it is closed or destroyed, and by the broker
// when its process died and nobody has taken from it for `idle`.
class TemporaryGroup {
 public:
  static Result<TemporaryGroup> open(Client client, std::vector<std::string> patterns, Milliseconds idle = Milliseconds(60'000));
  TemporaryGroup(TemporaryGroup&& other) noexcept;
  TemporaryGroup& operator=(TemporaryGroup&& other) noexcept;
  ~TemporaryGroup();

  const std::string& queue() const { return queue_; }
  // Stop its workers first.
  Status close();

 private:
  TemporaryGroup(Client client, std::string queue);

  Client client_;
  std::string queue_;  // Empty: closed.
};

}  // namespace bide
