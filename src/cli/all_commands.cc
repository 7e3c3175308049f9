// The table of commands, in the order in which --help shows them.

#include <array>

#include "cli/command_groups.h"

namespace bide::cli {

namespace {

constexpr std::array kGroups = {
    bench_commands,
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
