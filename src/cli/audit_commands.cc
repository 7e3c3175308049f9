// bide audit, bide doctor: whether everything is as it should be.

#include <cstdio>
#include <string>
#include <utility>

#include "cli/ask.h"
#include "cli/audit_text.h"
#include "cli/command_groups.h"
#include "cli/json.h"
#include "cli/open_store.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "core/duration.h"

namespace bide::cli {

namespace {

int audit(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  const AuditReport report = ask<AuditReport>([&](auto done) { client.inspector().audit(std::move(done)); });
  std::fputs(call.json() ? (to_json(report).text() + "\n").c_str() : audit_text(report).c_str(), stdout);
  return report.ok() ? kOk : kJobFailed;
}

struct Finding {
  bool ok = true;
  std::string what;
  std::string advice = {};
};

std::vector<Finding> examine(Client& client) {
  std::vector<Finding> findings;
  const AuditReport report = ask<AuditReport>([&](auto done) { client.inspector().audit(std::move(done)); });
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
  for (const QueueInfo& queue :
       ask<std::vector<QueueInfo>>([&](auto done) { client.inspector().queues(std::move(done)); })) {
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
  Client client = open_client(call, Missing::kRefuse);
  bool well = true;
  JsonArray json;
  for (const Finding& finding : examine(client)) {
    well = well && finding.ok;
    json.add(JsonObject().add("ok", finding.ok).add("what", finding.what).add("advice", finding.advice));
    if (call.json()) continue;
    std::printf("%s %s\n", styled(finding.ok ? Style::kGreen : Style::kYellow, finding.ok ? "ok  " : "look").c_str(),
                for_people(finding.what).c_str());
    if (!finding.advice.empty()) std::printf("     %s\n", for_people(finding.advice).c_str());
  }
  if (call.json()) std::puts(JsonObject().add("ok", well).add("findings", json).text().c_str());
  return well ? kOk : kJobFailed;
}

}  // namespace

JsonObject to_json(const AuditReport& report) {
  JsonObject details;
  for (const auto& [name, count] : report.details) details.add(name, count);
  JsonArray problems;
  for (const std::string& problem : report.problems) problems.add(problem);
  return JsonObject()
      .add("ok", report.ok())
      .add("accepted", report.accepted)
      .add("done", report.done)
      .add("removed", report.removed)
      .add("live", report.live)
      .add("details", details)
      .add("problems", problems);
}

std::string audit_text(const AuditReport& report) {
  std::string text = std::to_string(report.accepted) + " accepted = " + std::to_string(report.done) + " done + " +
                     std::to_string(report.removed) + " removed + " + std::to_string(report.live) + " live\n";
  Table table({}, {Table::Align::kLeft, Table::Align::kRight});
  for (const auto& [name, count] : report.details) {
    if (count > 0) table.row({"  " + name, std::to_string(count)});
  }
  text += table.text();
  for (const std::string& problem : report.problems) text += styled(Style::kRed, "problem: ") + for_people(problem) + "\n";
  return text + (report.ok() ? styled(Style::kGreen, "every accepted job is accounted for") + "\n" : "");
}

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
