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

std::string frame(Inspector& inspector, Totals& last, double seconds) {
  const auto queues = ask<std::vector<QueueInfo>>([&](auto done) { inspector.queues(std::move(done)); });
  const auto audit = ask<AuditReport>([&](auto done) { inspector.audit(std::move(done)); });
  char head[160];
  std::snprintf(head, sizeof head, "%s   in %.0f/s   done %.0f/s   live %llu\n\n", core::format_time(now()).c_str(),
                static_cast<double>(audit.accepted - last.accepted) / seconds,
                static_cast<double>(audit.done - last.done) / seconds, static_cast<unsigned long long>(audit.live));
  last = {audit.accepted, audit.done};
  return head + queue_table(queues, now());
}

int top(const Invocation& call) {
  const Milliseconds every = call.duration("--every").value_or(std::chrono::seconds(1));
  if (every < Milliseconds(100)) fail_usage("--every: at least 100ms");
  const std::int64_t frames = call.number("--frames", 0, 0, 1'000'000'000);
  Client client = open_client(call, Missing::kRefuse);
  const auto audit = ask<AuditReport>([&](auto done) { client.inspector().audit(std::move(done)); });
  Totals last{audit.accepted, audit.done};
  const double seconds = std::chrono::duration<double>(every).count();
  for (std::int64_t shown = 0; frames == 0 || shown < frames; ++shown) {
    if (shown > 0) std::this_thread::sleep_for(every);
    const std::string text = frame(client.inspector(), last, seconds);
    if (stdout_is_terminal()) std::fputs("\x1b[H\x1b[2J", stdout);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  return kOk;
}

}  // namespace

std::vector<Command> top_commands() {
  return {{.path = "top",
           .summary = "Watch the queues live; end it with Ctrl-C",
           .flags = {{"--every", "DURATION", "between two looks; default: 1s"},
                     {"--frames", "N", "stop after so many looks; default: never"},
                     kUrlFlag},
           .run = top}};
}

}  // namespace bide::cli
