#include "cli/command_line.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/invocation.h"
#include "cli/say.h"
#include "core/did_you_mean.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h"; }

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

std::string_view first_word(std::string_view path) { return path.substr(0, path.find(' ')); }
std::string_view second_word(std::string_view path) {
  const std::size_t space = path.find(' ');
  return space == std::string_view::npos ? std::string_view() : path.substr(space + 1);
}

// The allowed words at one place of the command line, once each.
std::vector<std::string_view> words_of(std::string_view group) {
  std::vector<std::string_view> words;
  for (const Command& command : all_commands()) {
    const std::string_view first = first_word(command.path);
    const std::string_view word = group.empty() ? first : (first == group ? second_word(command.path) : "");
    if (!word.empty() && (words.empty() || words.back() != word)) words.push_back(word);
  }
  return words;
}

[[noreturn]] void fail_unknown_command(std::string_view group, const std::string& given) {
  const std::vector<std::string_view> words = words_of(group);
  const std::string where = group.empty() ? "bide" : "bide " + std::string(group);
  fail_usage("unknown command " + core::quoted(given) + core::did_you_mean(given, words) + " (`" + where +
             " --help` lists them)");
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
    fail_usage("a command comes first, its flags behind it: bide COMMAND " + core::quoted(words.front()) + " (`bide --help` lists them)");
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

int report(const Failure& failure, bool json) {
  std::fflush(stdout);
  if (json) {
    std::fprintf(stderr, "%s\n", to_json(failure).c_str());
  } else {
    tell("error: " + failure.message);
  }
  return failure.exit_code;
}

// Also when the rest of what was typed makes no sense.
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

}  // namespace

int run_command_line(std::vector<std::string> words) {
  keep_standard_streams();
  const bool json = wants_json(words);
  try {
    const int exit_code = run(std::move(words));
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return report({kInputOutput, "the output could not be written"}, json);
    }
    return exit_code;
  } catch (const Failure& failure) {
    return report(failure, json);
  } catch (const std::bad_alloc&) {
    return report({kTryAgain, "there is not enough memory", "out_of_memory"}, json);
  } catch (const std::exception& error) {
    return report({kInternal, std::string("internal error: ") + error.what()}, json);
  }
}

}  // namespace bide::cli
