// bide top: the queues, live.

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "cli/ask.h"
#include "cli/command_groups.h"
#include "cli/invocation.h"
#include "cli/job_text.h"
#include "cli/open_store.h"
#include "cli/queue_table.h"
#include "cli/terminal.h"
#include "core/time_text.h"

namespace bide::cli {

namespace {

struct Totals {
  std::uint64_t accepted = 0;
  std::uint64_t done = 0;
};

JsonObject json_frame(const std::vector<QueueInfo>& queues, const AuditReport& audit, double in, double done) {
  JsonArray array;
  for (const QueueInfo& queue : queues) array.add(to_json(queue));
  return JsonObject()
      .add("at", core::format_time(now()))
      .add("in_per_s", in)
      .add("done_per_s", done)
      .add("live", audit.live)
      .add("queues", array);
}

std::string frame(Inspector& inspector, Totals& last, double seconds, bool json) {
  const auto queues = ask<std::vector<QueueInfo>>([&](auto done) { inspector.queues(std::move(done)); });
  const auto audit = ask<AuditReport>([&](auto done) { inspector.audit(std::move(done)); });
  const double in_rate = static_cast<double>(audit.accepted - last.accepted) / seconds;
  const double done_rate = static_cast<double>(audit.done - last.done) / seconds;
  last = {audit.accepted, audit.done};
  if (json) return json_frame(queues, audit, in_rate, done_rate).text() + "\n";
  char head[160];
  std::snprintf(head, sizeof head, "%s   in %.0f/s   done %.0f/s   live %llu\n\n", core::format_time(now()).c_str(),
                in_rate, done_rate, static_cast<unsigned long long>(audit.live));
  return head + queue_table(queues, now());
}

int top(const Invocation& call) {
  const Milliseconds every = call.duration("--every").value_or(std::chrono::seconds(1));
  if (every < Milliseconds(100) || every > std::chrono::hours(24)) fail_usage("--every: allowed is 100ms to 1d");
  const std::int64_t frames = call.number("--frames", 0, 1, 1'000'000'000);
  Client client = open_client(call, Missing::kRefuse);
  const auto audit = ask<AuditReport>([&](auto done) { client.inspector().audit(std::move(done)); });
  Totals last{audit.accepted, audit.done};
  const double seconds = std::chrono::duration<double>(every).count();
  for (std::int64_t shown = 0; frames == 0 || shown < frames; ++shown) {
    if (shown > 0) std::this_thread::sleep_for(every);
    const std::string text = frame(client.inspector(), last, seconds, call.json());
    if (stdout_is_terminal() && !call.json()) std::fputs("\x1b[H\x1b[2J", stdout);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  return kOk;
}

}  // namespace

std::vector<Command> top_commands() {
  return {{.path = "top",
           .summary = "Watch the queues live; end it with Ctrl-C",
           .flags = {{"--every", "DURATION", "between two looks, 100ms to 1d; default: 1s"},
                     {"--frames", "N", "stop after so many looks, from 1; default: never"},
                     kUrlFlag,
                     {"--json", "", "each look as a JSON object on a line of stdout"}},
           .run = top}};
}

}  // namespace bide::cli
