// bide move.

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/quote.h"
#include "move/move.h"

namespace bide::cli {

namespace {

using move::MoveOptions;
using move::MoveReport;

std::string needed(const Invocation& call, std::string_view flag) {
  const auto url = call.value(flag);
  if (!url) fail_usage(std::string(flag) + " is missing: bide move --from URL --to URL");
  return *url;
}

std::vector<std::string> queues_wanted(const Invocation& call) {
  for (const std::string& queue : call.values("--queue")) check_name("--queue", "queue name", queue);
  return call.values("--queue");
}

JsonObject report_json(const MoveReport& report) {
  JsonObject reasons;
  for (const auto& [reason, count] : report.reasons) reasons.add(reason, count);
  const JsonArray examples(report.examples, [](const auto& example) {
    return JsonObject().add("id", example.first).add("message", example.second);
  });
  JsonObject json;
  json.add("moved", report.moved()).add("waiting", report.waiting).add("dead", report.dead);
  json.add("existed", report.existed).add("running", report.running).add("refused", report.refused);
  json.add("reasons", reasons).add("examples", examples).add("at_both", JsonArray(report.at_both));
  return json.add("notes", JsonArray(report.notes));
}

std::string report_text(const MoveReport& report) {
  std::string text = "moved " + std::to_string(report.moved()) + " jobs: " + std::to_string(report.waiting) +
                     " waiting, " + std::to_string(report.dead) + " dead\n";
  if (report.existed > 0) {
    text += std::to_string(report.existed) + " of them were there already, from a move that was interrupted\n";
  }
  if (report.running > 0) text += std::to_string(report.running) + " run at the source and stay there\n";
  for (const JobId& id : report.at_both) text += "job " + id.to_string() + " was started at both ends\n";
  if (report.refused > 0) {
    text += std::to_string(report.refused) + " were refused by the target and stay at the source:\n";
    for (const auto& [id, message] : report.examples) {
      text += "  " + id.to_string() + "  " + for_people(message) + "\n";
    }
    if (report.refused > report.examples.size()) text += "  ...\n";
  }
  for (const std::string& note : report.notes) text += "note: " + for_people(note) + "\n";
  return text;
}

int dry_run(const Invocation& call, const Client& from, const MoveOptions& options) {
  const std::vector<QueueInfo> queues =
      take(move::queues_to_move({from.broker(), from.inspector()}, options.queues));
  std::uint64_t waiting = 0, dead = 0, running = 0;
  for (const QueueInfo& queue : queues) {
    waiting += queue.scheduled + queue.ready;
    dead += queue.dead;
    running += queue.running;
  }
  JsonObject json;
  json.add("dry_run", true).add("waiting", waiting).add("dead", dead).add("running", running);
  print(call, json.add("queues", JsonArray(queues)),
        queues.empty() ? "there is nothing to move\n" : queue_table(queues, now()) + "would move " +
            std::to_string(waiting) + " waiting and " + std::to_string(dead) + " dead jobs; " + std::to_string(running) +
            " run\n");
  return kOk;
}

int move_all(const Invocation& call) {
  const std::string source = needed(call, "--from");
  const std::string target = needed(call, "--to");
  if (source == target) fail_usage("--from and --to are the same");
  MoveOptions options;
  options.queues = queues_wanted(call);
  options.jobs_a_second = static_cast<double>(call.number("--rate", 0, 0, 10'000'000));
  options.wait_for_running = !call.has("--no-wait");
  options.follow = call.has("--follow");
  const Client from = open_client(source, Missing::kRefuse);
  if (call.has(kDryRunFlag.name)) return dry_run(call, from, options);
  const Client to = open_client(target, Missing::kCreate);
  StatusLine status;
  MoveReport last;
  const auto start = std::chrono::steady_clock::now();
  options.on_progress = [&](const MoveReport& report) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const auto rate = static_cast<std::uint64_t>(static_cast<double>(report.moved()) / std::max(passed.count(), 0.001));
    std::string text = std::to_string(report.moved()) + " moved, " + std::to_string(rate) + "/s";
    if (report.refused > 0) text += ", " + std::to_string(report.refused) + " refused";
    if (report.running > 0) text += ", waiting for " + std::to_string(report.running) + " that run at the source";
    status.show_progress(report.moved(), std::max(report.found, report.moved()), text);
    last = report;
  };
  const auto moved =
      move::move_jobs({from.broker(), from.inspector()}, {to.broker(), to.inspector()}, options);
  status.clear();
  if (!moved) {
    if (last.moved() > 0) tell(std::to_string(last.moved()) + " jobs were moved before it failed; run it again to go on");
    fail(moved.error());
  }
  print(call, report_json(*moved), report_text(*moved));
  return moved->refused == 0 && moved->at_both.empty() ? kOk : kJobFailed;
}

}  // namespace

std::vector<Command> move_commands() {
  return {
      {.path = "move",
       .summary = "Bring every waiting, scheduled and dead job from one broker to another",
       .details =
           "Jobs keep their id, due time, attempts and errors; dead jobs stay dead. The queues of the source are paused "
           "while it runs, and what runs there is waited for, so no job is started at both ends. It may be killed at any "
           "moment and run again: nothing is lost, and nothing is there twice where the target knows ids.\n\n"
           "From RabbitMQ, which cannot list, dead and ready jobs are moved; what waits for its time comes when it is due, "
           "with --follow.",
       .flags = {{"--from", "URL", "the broker that has the jobs"},
                 {"--to", "URL", "the broker that gets them"},
                 {"--queue", "NAME", "only this queue; may be given several times", true},
                 {"--rate", "N", "at most so many jobs a second; default: as fast as it goes"},
                 {"--no-wait", "", "leave jobs that run at the source where they are"},
                 {"--follow", "", "from RabbitMQ: go on until interrupted, for what becomes due later"},
                 kDryRunFlag,
                 kJsonFlag},
       .run = move_all},
  };
}

}  // namespace bide::cli
