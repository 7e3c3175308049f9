// bide queue.

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "cli/ask.h"
#include "cli/command_groups.h"
#include "cli/job_selection.h"
#include "cli/job_text.h"
#include "cli/open_store.h"
#include "cli/queue_table.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

constexpr Argument kQueueArgument = {"QUEUE", "its name"};

std::vector<QueueInfo> ask_queues(Inspector& inspector) {
  return ask<std::vector<QueueInfo>>([&](auto done) { inspector.queues(std::move(done)); });
}

int list(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<QueueInfo> queues = ask_queues(client.inspector());
  if (call.json()) {
    JsonArray array;
    for (const QueueInfo& queue : queues) array.add(to_json(queue));
    std::puts(JsonObject().add("queues", array).text().c_str());
  } else {
    std::fputs(queues.empty() ? "no queues yet\n" : queue_table(queues, now()).c_str(), stdout);
  }
  return kOk;
}

int set_paused(const Invocation& call, bool paused) {
  const std::string name = call.argument(0);
  Client client = open_client(call, Missing::kRefuse);
  ask<void>([&](auto done) { client.inspector().pause(name, paused, std::move(done)); });
  if (call.json()) {
    std::puts(JsonObject().add("queue", name).add("paused", paused).text().c_str());
  } else {
    std::printf("queue %s is %s\n", name.c_str(), paused ? "paused" : "open");
  }
  return kOk;
}

int pause(const Invocation& call) { return set_paused(call, true); }
int resume(const Invocation& call) { return set_paused(call, false); }

int purge(const Invocation& call) {
  const std::string name = call.argument(0);
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<QueueInfo> queues = ask_queues(client.inspector());
  const auto found = std::find_if(queues.begin(), queues.end(), [&](const QueueInfo& q) { return q.name == name; });
  if (found == queues.end()) throw Failure{kNotThere, "there is no queue " + core::quoted(name)};
  const std::uint64_t waiting = found->scheduled + found->ready;
  if (waiting > 0) confirm(call, "remove " + std::to_string(waiting) + " jobs of queue " + name + " for good");
  const auto removed =
      ask<std::uint64_t>([&](auto done) { client.inspector().purge(name, std::move(done)); });
  if (call.json()) {
    std::puts(JsonObject().add("queue", name).add("removed", removed).text().c_str());
  } else {
    std::printf("removed %llu jobs\n", static_cast<unsigned long long>(removed));
  }
  return kOk;
}

}  // namespace

std::string queue_table(const std::vector<QueueInfo>& queues, Time now) {
  constexpr auto kRight = Table::Align::kRight;
  Table table({"queue", "scheduled", "ready", "running", "dead", "done", "workers", "oldest ready", ""},
              {Table::Align::kLeft, kRight, kRight, kRight, kRight, kRight, kRight});
  for (const QueueInfo& queue : queues) {
    table.row({queue.name, std::to_string(queue.scheduled), std::to_string(queue.ready), std::to_string(queue.running),
               std::to_string(queue.dead), std::to_string(queue.done), std::to_string(queue.workers),
               queue.oldest_ready ? relative_time(*queue.oldest_ready, now) : "-", queue.paused ? "paused" : ""});
  }
  return table.text();
}

std::vector<Command> queue_commands() {
  return {
      {.path = "queue list", .summary = "List the queues and what is in them", .flags = {kUrlFlag, kJsonFlag}, .run = list},
      {.path = "queue pause",
       .summary = "Hold back the jobs of a queue; running ones finish",
       .arguments = {kQueueArgument},
       .flags = {kUrlFlag, kJsonFlag},
       .run = pause},
      {.path = "queue resume",
       .summary = "Let the jobs of a paused queue run again",
       .arguments = {kQueueArgument},
       .flags = {kUrlFlag, kJsonFlag},
       .run = resume},
      {.path = "queue purge",
       .summary = "Remove every job of a queue that is not running",
       .arguments = {kQueueArgument},
       .flags = {kYesFlag, kUrlFlag, kJsonFlag},
       .run = purge},
  };
}

}  // namespace bide::cli
