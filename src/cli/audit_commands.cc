// bide audit, doctor and top: a store as a whole.

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "brokers/open_broker.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/duration.h"
#include "core/time_text.h"
#include "outbox/outbox_broker.h"

namespace bide::cli {

namespace {

int audit(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  const AuditReport report = audit_of(client);
  print(call.json() ? wire::audit_json(report) + "\n" : audit_text(report));
  return report.ok() ? kOk : kJobFailed;
}

struct DoctorFinding {
  bool ok = true;
  std::string what;
  std::string advice = {};
};

std::vector<DoctorFinding> examine_server_of(const std::string& url) {
  std::vector<DoctorFinding> findings;
  const auto examined = brokers::examine_server(url);
  if (!examined) return findings;  // Opening it says why.
  for (const brokers::ServerFinding& finding : *examined) findings.push_back({finding.ok, finding.what, finding.advice});
  return findings;
}

void examine_outbox(const outbox::OutboxBroker& broker, std::vector<DoctorFinding>& findings) {
  const outbox::OutboxStatus status = take(broker.status());
  const std::string& problem = status.forwarder.problem;
  const std::string count = std::to_string(status.waiting) + " jobs wait in the outbox";
  if (!status.forwarder.reached) {
    findings.push_back({false, count + ", and the broker does not answer" + (problem.empty() ? "" : ": " + problem),
                        "they are safe on disk and go out by themselves when it answers"});
  } else if (!problem.empty()) {
    findings.push_back({false, count + ", and the broker does not take them: " + problem});
  } else if (status.oldest && now() - *status.oldest > std::chrono::minutes(1)) {
    findings.push_back({false, count + ", the first for " + core::rough_duration(now() - *status.oldest),
                        status.forwards_here ? "" : "the process that owns the outbox should hand them on: is it well?"});
  } else {
    findings.push_back({true, "the outbox hands jobs on; " + std::to_string(status.waiting) + " wait"});
  }
  if (status.dead > 0) {
    findings.push_back({false, std::to_string(status.dead) + " jobs of the outbox were refused by the broker for good",
                        "`bide dead list --url bide:DIRECTORY` with the directory of the outbox"});
  }
}

std::vector<DoctorFinding> examine(Client& client) {
  std::vector<DoctorFinding> findings;
  if (const outbox::OutboxBroker* broker = outbox::outbox_of(client.broker())) {
    examine_outbox(*broker, findings);
    if (!client.broker().capabilities().audit) return findings;
  }
  const AuditReport report = audit_of(client);
  if (report.ok()) findings.push_back({true, "every accepted job is accounted for"});
  for (const std::string& problem : report.problems) {
    findings.push_back({false, problem, "keep a copy of the directory, then `bide store check` and `bide store repair`"});
  }
  const Pressure pressure = client.broker().pressure();
  const bool calm = pressure.level == Pressure::Level::kOk;
  findings.push_back({calm, calm ? "the broker takes jobs" : "the broker wants less: " + pressure.reason, ""});
  const Capabilities can = client.broker().capabilities();
  if (!can.why_not.empty()) findings.push_back({true, "this broker cannot do everything: " + can.why_not});
  const Time moment = now();
  for (const QueueInfo& queue : queues_of(client)) {
    if (queue.paused && queue.ready + queue.scheduled > 0) {
      findings.push_back({false, "queue " + queue.name + " is paused, and jobs wait in it",
                          "`bide queue resume " + queue.name + "`"});
    }
    if (queue.dead > 0) {
      findings.push_back({false, std::to_string(queue.dead) + " jobs of queue " + queue.name + " are dead",
                          "`bide dead list --queue " + queue.name + "`"});
    }
    if (queue.oldest_ready && !queue.paused && moment - *queue.oldest_ready > std::chrono::minutes(5)) {
      findings.push_back({false, "a job of queue " + queue.name + " has been ready for " +
                                     core::rough_duration(moment - *queue.oldest_ready),
                          queue.workers == 0 ? "start a worker for it" : "start more workers for it"});
    }
  }
  return findings;
}

int doctor(const Invocation& call) {
  std::vector<DoctorFinding> findings = examine_server_of(url_of(call));
  Client client = open_client(call, Missing::kRefuse);
  for (DoctorFinding& finding : examine(client)) findings.push_back(std::move(finding));
  bool well = true;
  JsonArray json;
  std::string text;
  for (const DoctorFinding& finding : findings) {
    well = well && finding.ok;
    json.add(JsonObject().add("ok", finding.ok).add("what", finding.what).add("advice", finding.advice));
    text += finding.ok ? styled(Style::kGreen, "ok  ") : styled(Style::kYellow, "look");
    text += " " + for_people(finding.what) + "\n";
    if (!finding.advice.empty()) text += "     " + for_people(finding.advice) + "\n";
  }
  print(call, JsonObject().add("ok", well).add("findings", json), text);
  return well ? kOk : kJobFailed;
}

struct Totals {
  std::uint64_t accepted = 0;
  std::uint64_t done = 0;
};

void print_frame(const Invocation& call, const Client& client, Totals& last, double seconds) {
  const std::vector<QueueInfo> queues = queues_of(client);
  const AuditReport audit = audit_of(client);
  const double in_rate = static_cast<double>(audit.accepted - last.accepted) / seconds;
  const double done_rate = static_cast<double>(audit.done - last.done) / seconds;
  last = {audit.accepted, audit.done};
  JsonObject json;
  json.add("at", now()).add("in_per_s", in_rate).add("done_per_s", done_rate);
  json.add("live", audit.live).add("queues", JsonArray(queues));
  char head[160];
  std::snprintf(head, sizeof head, "%s   in %.0f/s   done %.0f/s   live %llu\n\n", core::format_time(now()).c_str(),
                in_rate, done_rate, static_cast<unsigned long long>(audit.live));
  if (stdout_is_terminal() && !call.json()) print("\x1b[H\x1b[2J");
  print(call, json, head + queue_table(queues, now()));
  std::fflush(stdout);
}

int top(const Invocation& call) {
  const Milliseconds every = call.duration("--every").value_or(std::chrono::seconds(1));
  if (every < Milliseconds(100) || every > std::chrono::hours(24)) fail_usage("--every: allowed is 100ms to 1d");
  const std::int64_t frames = call.number("--frames", 0, 1, 1'000'000'000);
  Client client = open_client(call, Missing::kRefuse);
  const AuditReport audit = audit_of(client);
  Totals last{audit.accepted, audit.done};
  const double seconds = std::chrono::duration<double>(every).count();
  for (std::int64_t shown = 0; frames == 0 || shown < frames; ++shown) {
    if (shown > 0) std::this_thread::sleep_for(every);
    print_frame(call, client, last, seconds);
  }
  return kOk;
}

}  // namespace

std::vector<Command> audit_commands() {
  return {{.path = "audit",
           .summary = "Prove that every accepted job is in exactly one place",
           .flags = {kUrlFlag, kJsonFlag},
           .run = audit},
          {.path = "doctor",
           .summary = "Look for what a human should know, and say what to do",
           .flags = {kUrlFlag, kJsonFlag},
           .run = doctor},
          {.path = "top",
           .summary = "Watch the queues live; end it with Ctrl-C",
           .flags = {{"--every", "DURATION", "between two looks, 100ms to 1d; default: 1s"},
                     {"--frames", "N", "stop after so many looks, from 1; default: never"},
                     kUrlFlag,
                     {"--json", "", "each look as a JSON object on a line of stdout"}},
           .run = top}};
}

}  // namespace bide::cli
