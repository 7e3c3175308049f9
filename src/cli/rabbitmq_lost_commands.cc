// bide rabbitmq lost: the messages that had no way to go.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "brokers/rabbitmq/lost_set.h"
#include "brokers/rabbitmq/native_dialect.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/json.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

using namespace brokers::rabbitmq;

constexpr Flag kQueueFlag = {"--queue", "NAME", "those that belong to this bide queue"};
constexpr Flag kAllFlag = {"--all", "", "all of them"};
constexpr Flag kToFlag = {"--to", "NAME", "to this bide queue, instead of the one each belongs to"};

// The connections that it takes to look at lost messages and to send them on.
struct LostMessages {
  explicit LostMessages(const Invocation& call)
      : settings(rabbitmq_settings(call)), publisher(open(settings)), browser(settings, stamps) {}

  static std::unique_ptr<Publisher> open(const Settings& settings) {
    Result<std::unique_ptr<Publisher>> opened = Publisher::open(settings);
    if (!opened) fail_to_open(opened.error());
    return std::move(*opened);
  }

  const Settings settings;
  Stamps stamps;
  const std::unique_ptr<Publisher> publisher;
  NativeDialect dialect{settings, stamps};
  QueueBrowser browser;
  LostSet lost{settings, dialect, browser, *publisher};
};

std::string queue_name(const Invocation& call, const Flag& flag) {
  const std::string name = call.value_or(flag.name, "");
  if (call.has(flag.name) && !core::is_name(name)) {
    fail_usage(std::string(flag.name) + ": invalid name " + core::quoted(name) +
               "; allowed: 1 to 128 of A-Z a-z 0-9 _ - . : and neither a dot nor a colon at the start");
  }
  return name;
}

// By id, by queue, or all of them when that was said.
LostSet::Choice choice_of(const Invocation& call, bool all_unless_said) {
  const std::vector<std::string> ids = call.arguments();
  const std::string queue = queue_name(call, kQueueFlag);
  if (ids.empty() && queue.empty() && !call.has(kAllFlag.name) && !all_unless_said) {
    fail_usage("which ones? Give ids, --queue, or --all");
  }
  return [ids, queue](const LostMessage& message) {
    if (!queue.empty() && message.queue != queue) return false;
    return ids.empty() || std::find(ids.begin(), ids.end(), message.id) != ids.end();
  };
}

JsonObject to_json(const LostMessage& message) {
  return JsonObject()
      .add("id", message.id)
      .add("kind", message.kind)
      .add("queue", message.queue)
      .add("why", message.why)
      .add("bytes", message.bytes);
}

int list(const Invocation& call) {
  const LostSet::Choice chosen = choice_of(call, true);
  LostMessages messages(call);
  std::vector<LostMessage> all = take(messages.lost.list());
  std::erase_if(all, [&](const LostMessage& message) { return !chosen(message); });
  if (call.json()) {
    JsonArray array;
    for (const LostMessage& message : all) array.add(to_json(message));
    std::puts(JsonObject().add("messages", array).text().c_str());
    return kOk;
  }
  if (all.empty()) {
    std::puts("no message has lost its way");
    return kOk;
  }
  Table table({"id", "kind", "queue", "why", "bytes"}, {Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft,
                                                        Table::Align::kLeft, Table::Align::kRight});
  const auto shown = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
  for (const LostMessage& message : all) {
    table.row(
        {shown(message.id), shown(message.kind), shown(message.queue), message.why, std::to_string(message.bytes)});
  }
  std::fputs(table.text().c_str(), stdout);
  return kOk;
}

int tell_what_moved(const Invocation& call, std::string_view verb, const std::vector<LostSet::Moved>& moved) {
  JsonArray array;
  const Error* first = nullptr;
  for (const LostSet::Moved& each : moved) {
    JsonObject json = to_json(each.message).add("ok", each.status.has_value());
    if (!each.status) json.add("error", each.status.error().message);
    array.add(json);
    const std::string name = each.message.id.empty() ? "a message without id" : each.message.id;
    if (!call.json() && each.status) say(std::string(verb) + " " + name);
    if (!call.json() && !each.status) tell("error: " + name + ": " + each.status.error().message);
    if (!each.status && first == nullptr) first = &each.status.error();
  }
  if (call.json()) std::puts(JsonObject().add("messages", array).text().c_str());
  if (moved.empty() && !call.json()) say("no lost message matches");
  std::fflush(stdout);
  if (first == nullptr) return kOk;
  fail({first->code, "not everything was " + std::string(verb) + "; the first reason: " + first->message});
}

int requeue(const Invocation& call) {
  const LostSet::Choice chosen = choice_of(call, false);
  const std::string to = queue_name(call, kToFlag);
  LostMessages messages(call);
  return tell_what_moved(call, "requeued", take(messages.lost.requeue(chosen, to)));
}

int remove(const Invocation& call) {
  const LostSet::Choice chosen = choice_of(call, false);
  LostMessages messages(call);
  const std::vector<LostMessage> all = take(messages.lost.list());
  const auto count = std::count_if(all.begin(), all.end(), chosen);
  if (count > 0) confirm(call, "delete " + std::to_string(count) + " lost messages for good");
  return tell_what_moved(call, "deleted", take(messages.lost.remove(chosen)));
}

}  // namespace

std::vector<Command> rabbitmq_lost_commands() {
  constexpr Argument kIds = {"ID", "of messages, as listed; without any, the flags choose", true, true};
  return {
      {.path = "rabbitmq lost",
       .summary = "List the messages that had no way to go",
       .details =
           "Why: no_way, when the queue was not there; delivery_limit, when it was delivered too often; rejected,\n"
           "when it could be put nowhere else.",
       .flags = {kQueueFlag, kUrlFlag, kJsonFlag},
       .run = list},
      {.path = "rabbitmq lost-requeue",
       .summary = "Send lost messages to their queues",
       .details =
           "Each is confirmed by its queue, which is made when it is not there, before it is taken out of the lost\n"
           "ones. Delays that are not over go on.",
       .arguments = {kIds},
       .flags = {kQueueFlag, kAllFlag, kToFlag, kUrlFlag, kJsonFlag},
       .run = requeue},
      {.path = "rabbitmq lost-delete",
       .summary = "Delete lost messages for good",
       .arguments = {kIds},
       .flags = {kQueueFlag, kAllFlag, kYesFlag, kUrlFlag, kJsonFlag},
       .run = remove},
  };
}

}  // namespace bide::cli
