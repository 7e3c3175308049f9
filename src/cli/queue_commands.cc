// bide queue.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/quote.h"
#include "core/topics.h"
#include "wire/event_json.h"

namespace bide::cli {

namespace {

constexpr Argument kQueueArgument = {"QUEUE", "its name"};

int list_queues(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<QueueInfo> queues = queues_of(client);
  print(call, JsonObject().add("queues", JsonArray(queues)),
        queues.empty() ? "no queues yet\n" : queue_table(queues, now()));
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
  check_name("QUEUE", "queue name", name);
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<QueueInfo> queues = queues_of(client);
  const bool known = find(queues, name) != nullptr;
  if (!known && !paused) fail_unknown(queues, name);
  Warnings warnings(call.json());
  if (!known) warnings.add("queue " + core::quoted(name) + " has had no jobs so far" + hint(queues, name));
  ask<void>([&](auto done) { client.inspector().pause(name, paused, std::move(done)); });
  JsonObject json;
  json.add("queue", name).add("paused", paused).add("known", known).add("warnings", warnings.to_json());
  print(call, json, "queue " + name + " is " + (paused ? "paused" : "open") + "\n");
  return kOk;
}

int pause(const Invocation& call) { return set_paused(call, true); }
int resume(const Invocation& call) { return set_paused(call, false); }

int purge(const Invocation& call) {
  const std::string name = call.argument(0);
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<QueueInfo> queues = queues_of(client);
  const QueueInfo* const found = find(queues, name);
  if (found == nullptr) fail_unknown(queues, name);
  const std::uint64_t waiting = found->scheduled + found->ready + found->waiting;
  if (waiting > 0) confirm(call, "remove " + std::to_string(waiting) + " jobs of queue " + name + " for good");
  StatusLine status;
  status.show("removing " + std::to_string(waiting) + " jobs");
  const auto removed =
      ask<std::uint64_t>([&](auto done) { client.inspector().purge(name, std::move(done)); });
  status.clear();
  print(call, JsonObject().add("queue", name).add("removed", removed), "removed " + std::to_string(removed) + " jobs\n");
  return kOk;
}

std::string joined(const std::vector<std::string>& patterns) {
  std::string text;
  for (const std::string& pattern : patterns) text += (text.empty() ? "" : ", ") + pattern;
  return text;
}

int bind(const Invocation& call) {
  Binding binding{.queue = call.argument(0)};
  check_name("QUEUE", "queue name", binding.queue);
  binding.patterns.assign(call.arguments().begin() + 1, call.arguments().end());
  binding.most = static_cast<std::uint64_t>(call.number("--most", 0, 0, std::int64_t{1} << 53));
  binding.keep = call.duration("--keep").value_or(Milliseconds(0));
  binding.idle = call.duration("--idle").value_or(Milliseconds(0));
  if (Status valid = core::validate(binding); !valid) fail_usage("PATTERN: " + valid.error().message);
  Client client = open_client(call, Missing::kCreate);
  ask<void>([&](auto done) { client.inspector().bind(binding, std::move(done)); });
  print(call, JsonObject().add("queue", binding.queue).add("bound", true),
        "queue " + binding.queue + " gets " + joined(binding.patterns) + "\n");
  return kOk;
}

int unbind(const Invocation& call) {
  const std::string name = call.argument(0);
  check_name("QUEUE", "queue name", name);
  Client client = open_client(call, Missing::kRefuse);
  ask<void>([&](auto done) { client.inspector().bind({.queue = name}, std::move(done)); });
  print(call, JsonObject().add("queue", name).add("bound", false), "queue " + name + " gets no more events\n");
  return kOk;
}

int list_bindings(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  const auto bindings =
      ask<std::vector<Binding>>([&](auto done) { client.inspector().bindings(std::move(done)); });
  std::string text = bindings.empty() ? "no queue is bound to events\n" : "";
  for (const Binding& binding : bindings) {
    text += binding.queue + "  " + joined(binding.patterns);
    if (binding.most != 0) text += "  at most " + std::to_string(binding.most);
    if (binding.keep != Milliseconds(0)) text += "  kept " + core::format_duration(binding.keep);
    if (binding.idle != Milliseconds(0)) text += "  removed when idle for " + core::format_duration(binding.idle);
    text += "\n";
  }
  print(call, JsonObject().add("bindings", JsonArray(bindings)), text);
  return kOk;
}

}  // namespace

std::vector<Command> queue_commands() {
  return {
      {.path = "queue list", .summary = "List the queues and what is in them", .flags = {kUrlFlag, kJsonFlag}, .run = list_queues},
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
      {.path = "queue bind",
       .summary = "Let a queue get the events that match (bide publish), whatever it was bound to before",
       .arguments = {kQueueArgument,
                     {"PATTERN", "words between dots; * stands for one word, # for any number: order.*", false, true}},
       .flags = {{"--most", "N", "with so many jobs waiting it gets no more; default: no limit"},
                 {"--keep", "DURATION", "an event that was not begun by then is dead, as expired; default: no limit"},
                 {"--idle", "DURATION", "remove it when nobody has taken from it for so long; default: never"},
                 kUrlFlag,
                 kJsonFlag},
       .run = bind},
      {.path = "queue unbind",
       .summary = "Let a queue get no more events; what waits in it stays",
       .arguments = {kQueueArgument},
       .flags = {kUrlFlag, kJsonFlag},
       .run = unbind},
      {.path = "queue bindings", .summary = "List the queues that get events, and which", .flags = {kUrlFlag, kJsonFlag}, .run = list_bindings},
  };
}

}  // namespace bide::cli
