// The table of commands, in the order in which --help shows them.

#include <array>

#include "cli/command_groups.h"

namespace bide::cli {

namespace {

constexpr std::array kGroups = {
    demo_commands,
    enqueue_commands,
    work_commands,
    serve_commands,
    token_commands,
    job_commands,
    queue_commands,
    dead_commands,
    store_commands,
    audit_commands,
    top_commands,
    rabbitmq_commands,
    rabbitmq_lost_commands,
    bench_commands,
    completion_commands,
    version_commands,
};

}  // namespace

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = [] {
    std::vector<Command> all;
    for (const auto group : kGroups) {
      for (Command& command : group()) all.push_back(std::move(command));
    }
    return all;
  }();
  return commands;
}

}  // namespace bide::cli
