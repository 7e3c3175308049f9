// The commands, a function for each group; each lies in a file of its own.

#pragma once

#include <vector>

#include "cli/command.h"

namespace bide::cli {

std::vector<Command> version_commands();
std::vector<Command> bench_commands();

}  // namespace bide::cli
