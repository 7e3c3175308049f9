// bide outbox: what waits on this machine for its broker.

#include <chrono>
#include <string>
#include <thread>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/duration.h"
#include "outbox/outbox_broker.h"

namespace bide::cli {

namespace {

using outbox::OutboxBroker;
using outbox::OutboxStatus;

OutboxBroker& outbox_behind(const Client& client) {
  OutboxBroker* const broker = outbox::outbox_of(client.broker());
  if (broker == nullptr) fail_usage("--url: it names no outbox; an example is amqp://host/vhost?outbox=./outbox");
  return *broker;
}

JsonObject status_json(const OutboxStatus& status) {
  const outbox::Forwarder::Stats& stats = status.forwarder;
  JsonObject json;
  json.add("waiting", status.waiting).add("dead", status.dead).add("oldest", status.oldest);
  json.add("disk_bytes", status.disk_bytes);
  json.add("forwards_here", status.forwards_here).add("reached", stats.reached).add("problem", stats.problem);
  json.add("forwarded", stats.forwarded).add("existed", stats.existed).add("refused", stats.refused);
  return json.add("duplicates", stats.duplicates).add("retried", stats.retried);
}

std::string status_text(const OutboxStatus& status) {
  std::string text = std::to_string(status.waiting) + " jobs wait in the outbox";
  if (status.oldest) text += ", the first for " + core::rough_duration(now() - *status.oldest);
  text += "\n";
  if (status.dead > 0) {
    text += std::to_string(status.dead) + " were refused by the broker: `bide dead list --url bide:DIRECTORY` shows them\n";
  }
  if (!status.forwarder.problem.empty()) {
    text += "not handed on: " + for_people(status.forwarder.problem) + "\n";
  } else if (!status.forwarder.reached) {
    text += "the broker has not answered yet\n";
  }
  if (!status.forwards_here) text += "another process hands them on\n";
  return text;
}

int show_status(const Invocation& call) {
  const Client client = open_client(call, Missing::kRefuse);
  OutboxStatus status = take(outbox_behind(client).status());
  // Opening it has just begun to hand jobs on: what comes of the first try is worth a moment.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (status.waiting > 0 && status.forwards_here && !status.forwarder.reached && status.forwarder.problem.empty() &&
         std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    status = take(outbox_behind(client).status());
  }
  print(call, status_json(status), status_text(status));
  const bool stuck = status.waiting > 0 && !status.forwarder.problem.empty();
  return stuck || status.dead > 0 ? kJobFailed : kOk;
}

int drain(const Invocation& call) {
  const auto timeout = call.duration("--timeout");
  const Client client = open_client(call, Missing::kRefuse);
  OutboxBroker& broker = outbox_behind(client);
  const auto begin = std::chrono::steady_clock::now();
  StatusLine line;
  for (;;) {
    const OutboxStatus status = take(broker.status());
    if (status.waiting == 0) {
      line.clear();
      print(call, status_json(status), "the outbox is empty\n");
      return status.dead > 0 ? kJobFailed : kOk;
    }
    if (timeout && std::chrono::steady_clock::now() - begin > *timeout) {
      line.clear();
      throw Failure{kTryAgain, std::to_string(status.waiting) + " jobs are still in the outbox" +
                                   (status.forwarder.problem.empty() ? "" : ": " + status.forwarder.problem)};
    }
    line.show(std::to_string(status.waiting) + " jobs left" +
              (status.forwarder.problem.empty() ? "" : "; " + for_people(status.forwarder.problem)));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

std::vector<Command> outbox_commands() {
  constexpr Flag kOutboxUrl = {"--url", "URL", "the broker with its outbox: amqp://host/vhost?outbox=./outbox"};
  return {
      {.path = "outbox status",
       .summary = "Say what waits on this machine for its broker, and why",
       .details = "Exit status 1: jobs wait and the broker does not take them, or it has refused some for good.",
       .flags = {kOutboxUrl, kJsonFlag},
       .run = show_status},
      {.path = "outbox drain",
       .summary = "Hand everything in an outbox to its broker",
       .details = "For an outbox whose programs have ended. While one of them runs, it does this by itself.",
       .flags = {{"--timeout", "DURATION", "give up after so long; default: never"}, kOutboxUrl, kJsonFlag},
       .run = drain},
  };
}

}  // namespace bide::cli
