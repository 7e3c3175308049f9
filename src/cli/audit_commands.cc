// bide audit and doctor: a store as a whole.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "bide/dead_groups.h"
#include "brokers/open_broker.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/duration.h"
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

// The largest groups of its dead jobs; empty when they cannot be read.
std::string causes_of(const Client& client, const std::string& queue) {
  constexpr std::uint64_t kMostLookedAt = 10'000;
  constexpr std::size_t kMostNamed = 3;
  const auto found = dead_groups(client, {.queue = queue}, kMostLookedAt);
  if (!found) return "";
  std::string text;
  for (std::size_t i = 0; i < std::min(found->groups.size(), kMostNamed); ++i) {
    const DeadGroup& group = found->groups[i];
    text += (i == 0 ? ": " : "; ") + std::to_string(group.count) + " of " + group.kind + ", " + shortened(group.error, 60);
  }
  return found->groups.size() > kMostNamed ? text + "; and others" : text;
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
      findings.push_back({false, std::to_string(queue.dead) + " jobs of queue " + queue.name + " are dead" +
                                     causes_of(client, queue.name),
                          "`bide dead groups --queue " + queue.name + "`, repair the cause, `bide dead replay --like GROUP`"});
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

}  // namespace

std::vector<Command> audit_commands() {
  return {{.path = "audit",
           .summary = "Prove that every accepted job is in exactly one place",
           .flags = {kUrlFlag, kJsonFlag},
           .run = audit},
          {.path = "doctor",
           .summary = "Look for what a human should know, and say what to do",
           .flags = {kUrlFlag, kJsonFlag},
           .run = doctor}};
}

}  // namespace bide::cli
