// bide flow: the jobs that share a flow's id.

#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/flow_text.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"

namespace bide::cli {

namespace {

constexpr Argument kFlowArgument = {"ID", "of the flow"};

wire::FlowInfo read_flow(const Client& client, const JobId& id) {
  const JobPage page = list_all(client, {.flow = id, .bodies = false}, wire::kMostFlowJobs);
  if (page.jobs.empty()) {
    throw Failure{kNotThere, "there is no job of a flow " + id.to_string() + "; they may be done and forgotten", "not_found"};
  }
  return wire::flow_of(id, page.jobs, page.next.empty());
}

int show_flow(const Invocation& call) {
  const JobId id = call.job_id(0);
  if (call.has("--graph") && call.json()) fail_usage("--graph and --json: give one of them, not both");
  const Client client = open_client(call, Missing::kRefuse);
  const wire::FlowInfo flow = read_flow(client, id);
  if (call.has("--graph")) {
    print(flow_graph(flow));
  } else if (call.json()) {
    print(wire::flow_json(flow) + "\n");
  } else {
    print(flow_summary(flow) + "\n" + flow_tree(flow));
  }
  return kOk;
}

std::vector<JobFilter> filters_of_flow(const JobId& id, const std::vector<std::vector<JobState>>& states) {
  std::vector<JobFilter> filters;
  for (const auto& some : states) filters.push_back({.states = some, .flow = id, .bodies = false});
  return filters;
}

int cancel_flow(const Invocation& call) {
  const JobId id = call.job_id(0);
  const Client client = open_client(call, Missing::kRefuse);
  // Those that wait first: none of them may begin because another is gone.
  auto filters = filters_of_flow(
      id, {{JobState::kWaiting}, {JobState::kScheduled, JobState::kReady}, {JobState::kRunning}});
  return change_matching(call, client, std::move(filters), {"cancel", "cancelled"}, [&](const std::vector<JobId>& ids) {
    auto statuses = ask<std::vector<Status>>([&](auto done) { client.inspector().cancel(ids, {}, std::move(done)); });
    for (Status& each : statuses) {
      // It has gone along with one that it waited for.
      if (!each && each.error().code == ErrorCode::kNotFound) each = {};
    }
    return statuses;
  });
}

int replay_flow(const Invocation& call) {
  const JobId id = call.job_id(0);
  const Client client = open_client(call, Missing::kRefuse);
  const ReplayOptions options{.keep_attempts = call.has("--keep-attempts"), .delay = Milliseconds(0)};
  auto filters = filters_of_flow(id, {{JobState::kDead}});
  return change_matching(call, client, std::move(filters), {"replay", "replayed"}, [&](const std::vector<JobId>& ids) {
    return ask<std::vector<Status>>([&](auto done) { client.inspector().replay(ids, options, std::move(done)); });
  });
}

}  // namespace

std::vector<Command> flow_commands() {
  return {
      {.path = "flow show",
       .summary = "Show the jobs of a flow as a tree, and how far it is",
       .details = "Each job is deeper than the last of those it waits for. --graph writes it in Mermaid's language, for a\n"
                  "page or an editor that draws it.",
       .arguments = {kFlowArgument},
       .flags = {{"--graph", "", "as a graph, for Mermaid"}, kUrlFlag, kJsonFlag},
       .run = show_flow},
      {.path = "flow cancel",
       .summary = "Cancel what has not ended of a flow; running attempts are told to stop",
       .arguments = {kFlowArgument},
       .flags = {kMostFlag, kDryRunFlag, kYesFlag, kUrlFlag, kJsonFlag},
       .run = cancel_flow},
      {.path = "flow replay",
       .summary = "Put the dead jobs of a flow back, so that it goes on",
       .arguments = {kFlowArgument},
       .flags = {{"--keep-attempts", "", "keep the old counters: the budget is not fresh"}, kMostFlag, kDryRunFlag, kYesFlag,
                 kUrlFlag, kJsonFlag},
       .run = replay_flow},
  };
}

}  // namespace bide::cli
