// bide rabbitmq: what bide needs on a RabbitMQ server, and whether it is there and well. Over AMQP alone.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brokers/rabbitmq/doctor.h"
#include "brokers/rabbitmq/drift.h"
#include "brokers/rabbitmq/gc.h"
#include "brokers/rabbitmq/plan.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/json.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/duration.h"

namespace bide::cli {

namespace {

using namespace brokers::rabbitmq;

constexpr ChannelNumber kLooking = 1;

std::string_view name_of(Presence presence) {
  constexpr std::array<std::string_view, 4> kNames = {"missing", "there", "differs", "unknown"};
  return kNames[static_cast<std::size_t>(presence)];
}

std::string_view name_of(Finding::Weight weight) {
  constexpr std::array<std::string_view, 4> kNames = {"ok", "ask", "warning", "problem"};
  return kNames[static_cast<std::size_t>(weight)];
}

Style style_of(Finding::Weight weight) {
  constexpr std::array kStyles = {Style::kGreen, Style::kPlain, Style::kYellow, Style::kRed};
  return kStyles[static_cast<std::size_t>(weight)];
}

// The arguments that bide gives are texts, numbers and flags.
std::string field_json(const Field& field) {
  if (field.text() != nullptr) return json_string(*field.text());
  if (field.number() != nullptr) return std::to_string(*field.number());
  if (const bool* flag = std::get_if<bool>(&field.value)) return *flag ? "true" : "false";
  return "null";
}

JsonObject arguments_json(const FieldTable& arguments) {
  JsonObject json;
  for (const auto& [name, field] : arguments) json.raw(name, field_json(field));
  return json;
}

std::string arguments_text(const FieldTable& arguments) {
  std::string text;
  for (const auto& [name, field] : arguments) {
    text += (text.empty() ? "" : " ") + name + "=" + (field.text() != nullptr ? *field.text() : field_json(field));
  }
  return text;
}

JsonObject& add_examined(JsonObject& json, const Examined& examined) {
  json.add("state", name_of(examined.presence));
  JsonArray differences;
  for (const Difference& difference : examined.differences) {
    differences.add(JsonObject()
                        .add("argument", difference.argument)
                        .add("wanted", difference.wanted)
                        .add("current", difference.current));
  }
  return json.add("differences", differences).add("server_said", examined.words);
}

std::string state_text(const Examined& examined) {
  std::string text(name_of(examined.presence));
  for (const Difference& difference : examined.differences) {
    text += " " + difference.argument + "=" + difference.current;
  }
  return text;
}

JsonObject plan_json(const Plan& plan) {
  JsonArray exchanges;
  JsonArray queues;
  JsonArray bindings;
  for (const PlannedExchange& exchange : plan.exchanges) {
    JsonObject json;
    json.add("name", exchange.spec.name).add("type", exchange.spec.type);
    json.add("arguments", arguments_json(exchange.spec.arguments));
    exchanges.add(add_examined(json, exchange.examined));
  }
  for (const PlannedQueue& queue : plan.queues) {
    JsonObject json;
    json.add("name", queue.spec.name).add("arguments", arguments_json(queue.spec.arguments));
    queues.add(add_examined(json, queue.examined));
  }
  for (const BindingSpec& binding : plan.bindings) {
    bindings.add(JsonObject()
                     .add("source", binding.source)
                     .add("destination", binding.destination)
                     .add("destination_type", binding.to_exchange ? "exchange" : "queue")
                     .add("key", binding.key));
  }
  return JsonObject()
      .add("missing", plan.missing())
      .add("differing", plan.differing())
      .add("exchanges", exchanges)
      .add("queues", queues)
      .add("bindings", bindings);
}

std::string plan_text(const Plan& plan) {
  Table table({"what", "name", "state", "arguments"});
  for (const PlannedExchange& exchange : plan.exchanges) {
    table.row({exchange.spec.type + " exchange", exchange.spec.name, state_text(exchange.examined),
               arguments_text(exchange.spec.arguments)});
  }
  for (const PlannedQueue& queue : plan.queues) {
    table.row({"queue", queue.spec.name, state_text(queue.examined), arguments_text(queue.spec.arguments)});
  }
  std::string text = table.text() + "\n" + std::to_string(plan.missing()) + " missing, " +
                     std::to_string(plan.differing()) + " with other arguments, " +
                     std::to_string(plan.bindings.size()) +
                     " bindings (AMQP does not show bindings; making one that is there changes nothing)\n";
  for (const PlannedQueue& queue : plan.queues) {
    for (const Difference& difference : queue.examined.differences) {
      text += for_people(queue.spec.name + ": " + describe(difference)) + "\n";
    }
  }
  return text;
}

JsonObject findings_json(const std::vector<Finding>& findings) {
  JsonArray all;
  std::array<std::size_t, 4> counts{};
  for (const Finding& finding : findings) {
    counts[static_cast<std::size_t>(finding.weight)] += 1;
    all.add(JsonObject()
                .add("weight", name_of(finding.weight))
                .add("check", finding.check)
                .add("about", finding.about)
                .add("text", finding.text)
                .add("remedy", finding.remedy));
  }
  return JsonObject().add("problems", counts[3]).add("warnings", counts[2]).add("findings", all);
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::vector<const Finding*> sorted;
  for (const Finding& finding : findings) sorted.push_back(&finding);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Finding* a, const Finding* b) { return a->weight > b->weight; });
  std::string text;
  for (const Finding* finding : sorted) {
    std::string name(name_of(finding->weight));
    name.resize(8, ' ');
    const std::string line = (finding->about.empty() ? "" : finding->about + ": ") + finding->text;
    text += styled(style_of(finding->weight), name) + " " + for_people(line) + "\n";
    if (!finding->remedy.empty()) text += "         -> " + for_people(finding->remedy) + "\n";
  }
  return text;
}

JsonObject gc_json(const std::vector<GcEntry>& entries, bool dry_run) {
  JsonArray removed;
  JsonArray kept;
  for (const GcEntry& entry : entries) {
    if (entry.removed) {
      removed.add(entry.queue);
    } else {
      kept.add(JsonObject().add("queue", entry.queue).add("why", entry.why));
    }
  }
  return JsonObject().add("dry_run", dry_run).add("removed", removed).add("kept", kept);
}

std::string gc_text(const std::vector<GcEntry>& entries, bool dry_run) {
  if (entries.empty()) return "there are no delay queues\n";
  std::string text;
  for (const GcEntry& entry : entries) {
    const std::string what = entry.removed ? (dry_run ? "would be removed" : "removed") : "kept: " + entry.why;
    text += for_people(entry.queue + "  " + what) + "\n";
  }
  return text;
}

void add_delays(Deployment& deployment, std::string_view text) {
  while (true) {
    const std::size_t comma = text.find(',');
    const Result<Milliseconds> delay = core::parse_duration(text.substr(0, comma));
    if (!delay) fail_usage("--delays: " + delay.error().message);
    if (*delay > Limits::kDelay) fail_usage("--delays: at most " + core::format_duration(Limits::kDelay));
    deployment.delays.push_back(*delay);
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

std::vector<std::string> named_queues(const Invocation& call) {
  for (const std::string& queue : call.values("--queue")) check_name("--queue", "name", queue);
  return call.values("--queue");
}

Deployment deployment_of(const Invocation& call) {
  Deployment deployment;
  deployment.queues = named_queues(call);
  for (const std::string& text : call.values("--retry")) {
    const Result<RetryPolicy> policy = RetryPolicy::parse(text);
    if (!policy) fail_usage("--retry: " + policy.error().message);
    add_waits(deployment, *policy);
  }
  for (const std::string& text : call.values("--delays")) add_delays(deployment, text);
  if (const auto longest = call.duration("--delays-up-to")) {
    if (*longest > Limits::kDelay) fail_usage("--delays-up-to: at most " + core::format_duration(Limits::kDelay));
    deployment.every_delay_up_to = std::max(deployment.every_delay_up_to, *longest);
  }
  return deployment;
}

int plan(const Invocation& call) {
  const Settings settings = rabbitmq_settings(call);
  const Topology topology = topology_of(settings, deployment_of(call));
  const auto connection = connect(settings, "plan");
  Examiner examiner(*connection, kLooking);
  const Plan planned = take(make_plan(examiner, topology));
  print(call, plan_json(planned), plan_text(planned));
  return planned.differing() > 0 ? kConfiguration : kOk;
}

int apply(const Invocation& call) {
  const Settings settings = rabbitmq_settings(call);
  const Topology topology = topology_of(settings, deployment_of(call));
  const auto connection = connect(settings, "apply");
  Examiner examiner(*connection, kLooking);
  const Plan planned = take(make_plan(examiner, topology));
  if (const Status applied = apply_plan(settings, *connection, planned); !applied) {
    const bool differs = applied.error().code == ErrorCode::kInvalidArgument;
    if (!differs) fail(applied.error());
    throw Failure{kConfiguration, applied.error().message + "; nothing was declared; `bide rabbitmq doctor` says more"};
  }
  const std::size_t there = planned.exchanges.size() + planned.queues.size() - planned.missing();
  print(call,
        JsonObject()
            .add("declared", planned.missing())
            .add("there", there)
            .add("bindings", planned.bindings.size()),
        std::to_string(planned.missing()) + " exchanges and queues declared, " + std::to_string(there) +
            " were there; " + std::to_string(planned.bindings.size()) + " bindings made or confirmed\n");
  return kOk;
}

int rabbitmq_doctor(const Invocation& call) {
  const Settings settings = rabbitmq_settings(call);
  DoctorOptions options;
  options.deployment = deployment_of(call);
  options.time_limit = call.duration("--time-limit");
  options.consumer_timeout = call.duration("--consumer-timeout");
  const std::vector<Finding> findings = [&] {
    Result<std::vector<Finding>> found = examine_server(settings, options);
    if (!found) fail_to_open(found.error());
    return std::move(*found);
  }();
  print(call, findings_json(findings), findings_text(findings));
  for (const Finding& finding : findings) {
    if (finding.weight == Finding::Weight::kProblem) return kJobFailed;
  }
  return kOk;
}

int gc(const Invocation& call) {
  const Settings settings = rabbitmq_settings(call);
  GcOptions options;
  options.dry_run = call.has("--dry-run");
  options.queues = named_queues(call);
  if (!options.dry_run && !call.has("--while-stopped")) {
    fail_usage(
        "processes that run remember what they have declared, and would send jobs after a queue that is gone: "
        "stop all that enqueue or retry and say --while-stopped, or look with --dry-run");
  }
  const std::vector<GcEntry> entries = take(collect_garbage(settings, options));
  print(call, gc_json(entries, options.dry_run), gc_text(entries, options.dry_run));
  return kOk;
}

constexpr Flag kQueuesFlag = {"--queue", "NAME", "a bide queue; may be repeated", true};
constexpr Flag kRetryFlag = {"--retry", "POLICY", "a retry policy whose waits are expected; may be repeated", true};
constexpr Flag kDelaysFlag = {"--delays", "LIST", "delays that are expected, such as 10s,100s,1h; may be repeated",
                              true};
constexpr Flag kUpToFlag = {"--delays-up-to", "DURATION", "every delay up to this is expected"};

}  // namespace

std::vector<Command> rabbitmq_commands() {
  return {
      {.path = "rabbitmq plan",
       .summary = "Say what bide would declare on a RabbitMQ server, and what of it is there",
       .details =
           "Nothing is changed. Exits 78 when something is there with other arguments. Without queues and delays\n"
           "it shows what every deployment needs. With declare=no in the URL, or a policy with jitter, the queues\n"
           "for every delay up to the longest one are included.",
       .flags = {kQueuesFlag, kRetryFlag, kDelaysFlag, kUpToFlag, kUrlFlag, kJsonFlag},
       .run = plan},
      {.path = "rabbitmq apply",
       .summary = "Declare what bide needs on a RabbitMQ server",
       .details =
           "For deployments whose processes may not configure the server (declare=no in their URL). Nothing that is\n"
           "there is changed; when something is there with other arguments nothing is declared, exit 78.",
       .flags = {kQueuesFlag, kRetryFlag, kDelaysFlag, kUpToFlag, kUrlFlag, kJsonFlag},
       .run = apply},
      {.path = "rabbitmq doctor",
       .summary = "Look for what endangers jobs on a RabbitMQ server",
       .details =
           "Over AMQP alone, without the management plugin; nothing is declared. Exits 1 when there is a problem.\n"
           "What cannot be seen over AMQP is asked about.",
       .flags = {kQueuesFlag,
                 kRetryFlag,
                 kDelaysFlag,
                 kUpToFlag,
                 {"--time-limit", "DURATION", "the longest time limit of any job; default: 30m"},
                 {"--consumer-timeout", "DURATION", "what the server's consumer_timeout is set to; default: 30m"},
                 kUrlFlag,
                 kJsonFlag},
       .run = rabbitmq_doctor},
      {.path = "rabbitmq gc",
       .summary = "Remove delay queues that nobody needs now",
       .details =
           "Only those through which no job can be on its way; it says what was kept, and why. Stop whatever enqueues\n"
           "or retries first: a process remembers what it has declared.",
       .flags = {{"--dry-run", "", "only say what would be removed"},
                 {"--while-stopped", "", "nothing that enqueues or retries is running"},
                 kQueuesFlag,
                 kUrlFlag,
                 kJsonFlag},
       .run = gc},
  };
}

}  // namespace bide::cli
