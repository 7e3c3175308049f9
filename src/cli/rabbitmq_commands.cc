// bide rabbitmq: what bide needs on a RabbitMQ server, and whether it is there and well. Over AMQP alone.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brokers/rabbitmq/doctor.h"
#include "brokers/rabbitmq/gc.h"
#include "brokers/rabbitmq/plan.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/rabbitmq_settings.h"
#include "cli/rabbitmq_text.h"
#include "core/duration.h"
#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

using namespace brokers::rabbitmq;

constexpr ChannelNumber kLooking = 1;

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

std::vector<std::string> queues_of(const Invocation& call) {
  for (const std::string& queue : call.values("--queue")) {
    if (!core::is_name(queue)) {
      fail_usage("--queue: invalid name " + core::quoted(queue) +
                 "; allowed: 1 to 128 of A-Z a-z 0-9 _ - . : and neither a dot nor a colon at the start");
    }
  }
  return call.values("--queue");
}

Deployment deployment_of(const Invocation& call) {
  Deployment deployment;
  deployment.queues = queues_of(call);
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
  std::fputs(call.json() ? (to_json(planned).text() + "\n").c_str() : plan_text(planned).c_str(), stdout);
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
  if (call.json()) {
    std::puts(JsonObject()
                  .add("declared", planned.missing())
                  .add("there", planned.exchanges.size() + planned.queues.size() - planned.missing())
                  .add("bindings", planned.bindings.size())
                  .text()
                  .c_str());
  } else {
    say(std::to_string(planned.missing()) + " exchanges and queues declared, " +
        std::to_string(planned.exchanges.size() + planned.queues.size() - planned.missing()) + " were there; " +
        std::to_string(planned.bindings.size()) + " bindings made or confirmed");
  }
  return kOk;
}

int doctor(const Invocation& call) {
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
  std::fputs(call.json() ? (to_json(findings).text() + "\n").c_str() : findings_text(findings).c_str(), stdout);
  for (const Finding& finding : findings) {
    if (finding.weight == Finding::Weight::kProblem) return kJobFailed;
  }
  return kOk;
}

int gc(const Invocation& call) {
  const Settings settings = rabbitmq_settings(call);
  GcOptions options;
  options.dry_run = call.has("--dry-run");
  options.queues = queues_of(call);
  if (!options.dry_run && !call.has("--while-stopped")) {
    fail_usage(
        "processes that run remember what they have declared, and would send jobs after a queue that is gone: "
        "stop all that enqueue or retry and say --while-stopped, or look with --dry-run");
  }
  const std::vector<GcEntry> entries = take(collect_garbage(settings, options));
  std::fputs(call.json() ? (to_json(entries, options.dry_run).text() + "\n").c_str()
                         : gc_text(entries, options.dry_run).c_str(),
             stdout);
  return kOk;
}

constexpr Flag kQueueFlag = {"--queue", "NAME", "a bide queue; may be repeated", true};
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
       .flags = {kQueueFlag, kRetryFlag, kDelaysFlag, kUpToFlag, kUrlFlag, kJsonFlag},
       .run = plan},
      {.path = "rabbitmq apply",
       .summary = "Declare what bide needs on a RabbitMQ server",
       .details =
           "For deployments whose processes may not configure the server (declare=no in their URL). Nothing that is\n"
           "there is changed; when something is there with other arguments nothing is declared, exit 78.",
       .flags = {kQueueFlag, kRetryFlag, kDelaysFlag, kUpToFlag, kUrlFlag, kJsonFlag},
       .run = apply},
      {.path = "rabbitmq doctor",
       .summary = "Look for what endangers jobs on a RabbitMQ server",
       .details =
           "Over AMQP alone, without the management plugin; nothing is declared. Exits 1 when there is a problem.\n"
           "What cannot be seen over AMQP is asked about.",
       .flags = {kQueueFlag,
                 kRetryFlag,
                 kDelaysFlag,
                 kUpToFlag,
                 {"--time-limit", "DURATION", "the longest time limit of any job; default: 30m"},
                 {"--consumer-timeout", "DURATION", "what the server's consumer_timeout is set to; default: 30m"},
                 kUrlFlag,
                 kJsonFlag},
       .run = doctor},
      {.path = "rabbitmq gc",
       .summary = "Remove delay queues that nobody needs now",
       .details =
           "Only those through which no job can be on its way; it says what was kept, and why. Stop whatever enqueues\n"
           "or retries first: a process remembers what it has declared.",
       .flags = {{"--dry-run", "", "only say what would be removed"},
                 {"--while-stopped", "", "nothing that enqueues or retries is running"},
                 kQueueFlag,
                 kUrlFlag,
                 kJsonFlag},
       .run = gc},
  };
}

}  // namespace bide::cli
