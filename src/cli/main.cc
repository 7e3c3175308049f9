// From the words typed to an exit code: finds the command in the table, runs it, and turns whatever goes wrong into one
// line on stderr.

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/output.h"
#include "core/did_you_mean.h"
#include "core/quote.h"

namespace bide::cli {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = [] {
    std::vector<Command> all;
    for (const auto group : {demo_commands, enqueue_commands, work_commands, serve_commands, token_commands,
                             job_commands, flow_commands, queue_commands, queue_rules_commands, schedule_commands,
                             dead_commands, move_commands, outbox_commands, capability_commands, store_commands,
                             audit_commands, top_commands, rabbitmq_commands,
                             rabbitmq_lost_commands, sql_commands, bench_commands, help_commands}) {
      for (Command& command : group()) all.push_back(std::move(command));
    }
    return all;
  }();
  return commands;
}

namespace {

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h"; }

// The allowed words at one place of the command line, once each.
std::vector<std::string_view> words_of(std::string_view group) {
  std::vector<std::string_view> words;
  for (const Command& command : all_commands()) {
    const std::size_t space = std::min(command.path.find(' '), command.path.size());
    const std::string_view first = command.path.substr(0, space);
    std::string_view word = first;
    if (!group.empty()) word = first == group && space < command.path.size() ? command.path.substr(space + 1) : "";
    if (!word.empty() && (words.empty() || words.back() != word)) words.push_back(word);
  }
  return words;
}

[[noreturn]] void fail_unknown_command(const std::string& group, const std::string& given) {
  fail_usage("unknown command " + core::quoted(given) + core::did_you_mean(given, words_of(group)) + " (`bide " +
             group + (group.empty() ? "" : " ") + "--help` lists them)");
}

const Command* find_command(std::string_view path) {
  const std::vector<Command>& commands = all_commands();
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const Command& c) { return c.path == path; });
  return found == commands.end() ? nullptr : &*found;
}

int run(std::vector<std::string> words) {
  if (words.empty() || words.front() == "help" || asks_for_help(words.front())) {
    if (words.size() > 1 && words.front() == "help") {
      words.erase(words.begin());
      words.push_back("--help");
      return run(std::move(words));
    }
    print(help_for_all());
    return words.empty() ? kUsage : kOk;
  }
  if (words.front() == "--version") words.front() = "version";
  if (words.front().starts_with("-")) {
    fail_usage("a command comes first, its flags behind it: bide COMMAND " + core::quoted(words.front()) +
               " (`bide --help` lists them)");
  }

  const std::string first = words.front();
  words.erase(words.begin());
  const Command* command = find_command(first);
  if (command == nullptr) {
    if (words_of(first).empty()) fail_unknown_command("", first);
    if (words.empty() || asks_for_help(words.front())) {
      print(help_for_group(first));
      return words.empty() ? kUsage : kOk;
    }
    command = find_command(first + " " + words.front());
    if (command == nullptr) fail_unknown_command(first, words.front());
    words.erase(words.begin());
  }
  if (asks_for_help(*command, words)) {
    print(help_for(*command));
    return kOk;
  }
  return command->run(Invocation(*command, words));
}

// --json counts also when the rest of what was typed makes no sense.
bool wants_json(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, kJsonFlag.name) != end;
}

// Were one of them closed, a file of the store would take its number, and a message could end up in it. Each is opened
// the wrong way round, so that using it still fails.
void keep_standard_streams() {
  constexpr std::array kModes = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest number that is free, which is this one.
    [[maybe_unused]] const int opened = ::open("/dev/null", kModes[static_cast<std::size_t>(descriptor)]);
  }
}

int run_reporting(std::vector<std::string> words) {
  const bool json = wants_json(words);
  try {
    const int exit_code = run(std::move(words));
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
    return report({kInputOutput, "the output could not be written"}, json);
  } catch (const Failure& failure) {
    return report(failure, json);
  } catch (const std::bad_alloc&) {
    return report({kTryAgain, "there is not enough memory", "out_of_memory"}, json);
  } catch (const std::exception& error) {
    return report({kInternal, std::string("internal error: ") + error.what()}, json);
  }
}

}  // namespace

}  // namespace bide::cli

int main(int argc, char** argv) {
  bide::cli::keep_standard_streams();
  // A file that has reached the process's limit is a full disk, and no reason to die.
  std::signal(SIGXFSZ, SIG_IGN);
  return bide::cli::run_reporting({argv + (argc > 0 ? 1 : 0), argv + argc});
}
