// bide queue.

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/ask.h"
#include "cli/command_groups.h"
#include "cli/job_selection.h"
#include "cli/job_text.h"
#include "cli/open_store.h"
#include "cli/queue_table.h"
#include "cli/say.h"
#include "cli/terminal.h"
#include "core/did_you_mean.h"
#include "core/job_rules.h"
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

const QueueInfo* find(const std::vector<QueueInfo>& queues, const std::string& name) {
  const auto found = std::find_if(queues.begin(), queues.end(), [&](const QueueInfo& q) { return q.name == name; });
  return found == queues.end() ? nullptr : &*found;
}

std::string hint(const std::vector<QueueInfo>& queues, const std::string& name) {
  std::vector<std::string_view> names;
  for (const QueueInfo& queue : queues) names.push_back(queue.name);
  return core::did_you_mean(name, names);
}

[[noreturn]] void fail_unknown(const std::vector<QueueInfo>& queues, const std::string& name) {
  throw Failure{kNotThere, "there is no queue " + core::quoted(name) + hint(queues, name)};
}

// Pausing before the first job is there is how to let jobs pile up; opening what nobody has closed is a mistake.
int set_paused(const Invocation& call, bool paused) {
  const std::string name = call.argument(0);
  if (!core::is_name(name)) {
    fail_usage("QUEUE: invalid queue name " + core::quoted(name) +
               "; allowed: 1 to 128 of A-Z a-z 0-9 _ - . : and neither a dot nor a colon at the start");
  }
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<QueueInfo> queues = ask_queues(client.inspector());
  const bool known = find(queues, name) != nullptr;
  if (!known && !paused) fail_unknown(queues, name);
  Warnings warnings(call.json());
  if (!known) warnings.add("queue " + core::quoted(name) + " has had no jobs so far" + hint(queues, name));
  ask<void>([&](auto done) { client.inspector().pause(name, paused, std::move(done)); });
  if (call.json()) {
    JsonObject json;
    json.add("queue", name).add("paused", paused).add("known", known).add("warnings", warnings.to_json());
    std::puts(json.text().c_str());
  } else {
    say("queue " + name + " is " + (paused ? "paused" : "open"));
  }
  return kOk;
}

int pause(const Invocation& call) { return set_paused(call, true); }
int resume(const Invocation& call) { return set_paused(call, false); }

int purge(const Invocation& call) {
  const std::string name = call.argument(0);
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<QueueInfo> queues = ask_queues(client.inspector());
  const QueueInfo* const found = find(queues, name);
  if (found == nullptr) fail_unknown(queues, name);
  const std::uint64_t waiting = found->scheduled + found->ready;
  if (waiting > 0) confirm(call, "remove " + std::to_string(waiting) + " jobs of queue " + name + " for good");
  StatusLine status;
  status.show("removing " + std::to_string(waiting) + " jobs");
  const auto removed =
      ask<std::uint64_t>([&](auto done) { client.inspector().purge(name, std::move(done)); });
  status.clear();
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
       .summary = "Hold back the jobs of a queue, also before the first has come; running ones finish",
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
