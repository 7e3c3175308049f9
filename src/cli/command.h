// Command: one command of `bide` as data. Parsing, --help, the manual page and shell completion are derived from it.
//
//   {.path = "queue pause",
//    .summary = "Hold back the jobs of a queue",
//    .arguments = {{"QUEUE", "its name"}},
//    .flags = {kUrlFlag},
//    .run = pause}

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bide::cli {

class Invocation;

struct Argument {
  std::string_view name;  // In capitals.
  std::string_view help;
  bool optional = false;
  bool repeats = false;  // The last one only.
};

struct Flag {
  std::string_view name;   // "--queue"
  std::string_view value;  // "NAME"; empty: a switch.
  std::string_view help;
  bool repeats = false;
};

struct Command {
  std::string_view path;  // Words with spaces between.
  std::string_view summary;
  std::string_view details = {};  // Paragraphs, for --help and the manual page.
  std::vector<Argument> arguments = {};
  std::vector<Flag> flags = {};
  int (*run)(const Invocation&) = nullptr;  // The exit code.
};

inline constexpr Flag kUrlFlag = {"--url", "URL", "the broker; default: $BIDE_URL, or bide:./data"};
inline constexpr Flag kJsonFlag = {"--json", "", "JSON on stdout, of a stable shape"};
inline constexpr Flag kHelpFlag = {"--help", "", "show this help"};
inline constexpr Flag kYesFlag = {"--yes", "", "do not ask"};
inline constexpr Flag kDryRunFlag = {"--dry-run", "", "only say what would be done"};

// The groups of commands, each in the file of its name.
std::vector<Command> demo_commands();
std::vector<Command> enqueue_commands();
std::vector<Command> work_commands();
std::vector<Command> serve_commands();
std::vector<Command> token_commands();
std::vector<Command> job_commands();
std::vector<Command> flow_commands();
std::vector<Command> queue_commands();
std::vector<Command> queue_rules_commands();
std::vector<Command> schedule_commands();
std::vector<Command> dead_commands();
std::vector<Command> top_commands();
std::vector<Command> move_commands();
std::vector<Command> outbox_commands();
std::vector<Command> capability_commands();
std::vector<Command> store_commands();
std::vector<Command> audit_commands();
std::vector<Command> rabbitmq_commands();
std::vector<Command> rabbitmq_lost_commands();
std::vector<Command> sql_commands();
std::vector<Command> bench_commands();
std::vector<Command> help_commands();

// Of all groups, in the order in which --help shows them.
const std::vector<Command>& all_commands();

// The texts about commands, generated from their table: of everything; of a group, such as "queue"; of one command.
std::string help_for_all();
std::string help_for_group(std::string_view group);
std::string help_for(const Command& command);

std::string_view version();  // "1.2.3"

}  // namespace bide::cli
