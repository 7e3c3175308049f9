// Invocation: the arguments and flags of one call of a command, parsed by its table.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/job_id.h"
#include "cli/command.h"

namespace bide::cli {

// "bide queue pause QUEUE [flags]"
std::string usage(const Command& command);

// --help or -h is among the words, and not as the value of a flag or as an argument behind --.
bool asks_for_help(const Command& command, const std::vector<std::string>& words);

class Invocation {
 public:
  // Throws Failure: unknown flag, missing value, too few or too many arguments.
  Invocation(const Command& command, const std::vector<std::string>& words);

  const Command& command() const { return command_; }
  const std::vector<std::string>& arguments() const { return arguments_; }
  // Of an argument that is optional and was left out: empty.
  std::string argument(std::size_t position) const;

  bool has(std::string_view flag) const { return values_.contains(flag); }
  bool json() const { return has(kJsonFlag.name); }
  // Of the flag as often as it was given; all others take the last.
  const std::vector<std::string>& values(std::string_view flag) const;
  std::optional<std::string> value(std::string_view flag) const;
  std::string value_or(std::string_view flag, std::string_view otherwise) const;

  // The same, read as something. Each throws Failure with the flag's name and what is allowed.
  std::optional<Milliseconds> duration(std::string_view flag) const;
  std::optional<Time> time(std::string_view flag) const;
  // A time, or a duration counted back from now.
  std::optional<Time> since(std::string_view flag) const;
  // A time, or a duration counted from now on.
  std::optional<Time> until(std::string_view flag) const;
  std::int64_t number(std::string_view flag, std::int64_t otherwise, std::int64_t lowest, std::int64_t highest) const;
  JobId job_id(std::size_t position) const;
  std::vector<JobId> job_ids() const;  // All arguments.

 private:
  const Command& command_;
  std::vector<std::string> arguments_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// Throws Failure: "--queue: invalid queue name 'a b'; allowed: ...".
void check_name(std::string_view flag, std::string_view what, const std::string& name);

Time now();

}  // namespace bide::cli
