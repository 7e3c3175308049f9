// The commands, a function for each group; each lies in a file of its own.

#pragma once

#include <vector>

#include "cli/command.h"

namespace bide::cli {

std::vector<Command> demo_commands();
std::vector<Command> enqueue_commands();
std::vector<Command> work_commands();
std::vector<Command> serve_commands();
std::vector<Command> token_commands();
std::vector<Command> job_commands();
std::vector<Command> queue_commands();
std::vector<Command> dead_commands();
std::vector<Command> store_commands();
std::vector<Command> audit_commands();
std::vector<Command> top_commands();
std::vector<Command> rabbitmq_commands();
std::vector<Command> rabbitmq_lost_commands();
std::vector<Command> bench_commands();
std::vector<Command> completion_commands();
std::vector<Command> version_commands();

}  // namespace bide::cli
