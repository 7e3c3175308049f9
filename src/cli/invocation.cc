#include "cli/invocation.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "cli/failure.h"
#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/time_text.h"

namespace bide::cli {

namespace {

constexpr std::string_view kArgumentsOnly = "--";  // What follows are arguments, whatever they look like.

std::string argument_text(const Argument& argument) {
  std::string text(argument.name);
  if (argument.repeats) text += "...";
  return argument.optional ? "[" + text + "]" : text;
}

const Flag* find_flag(const Command& command, std::string_view name) {
  const auto found =
      std::find_if(command.flags.begin(), command.flags.end(), [&](const Flag& flag) { return flag.name == name; });
  return found == command.flags.end() ? nullptr : &*found;
}

[[noreturn]] void fail_flag(std::string_view flag, const std::string& message) {
  fail_usage(std::string(flag) + ": " + message);
}

// More would not fit where it is added to a clock.
Milliseconds checked(std::string_view flag, const std::string& text, Milliseconds duration) {
  if (duration <= Limits::kDelay) return duration;
  fail_flag(flag, core::quoted(text) + " is too long; allowed: 0 to 36500d (100 years)");
}

[[noreturn]] void fail_unknown_flag(const Command& command, std::string_view given) {
  given = given.substr(0, given.find('='));
  std::vector<std::string_view> names = {kHelpFlag.name};
  for (const Flag& flag : command.flags) names.push_back(flag.name);
  fail_usage("unknown flag " + core::quoted(given) + core::did_you_mean(given, names) +
             "; an argument that begins with - comes behind -- (usage: " + usage(command) + ")");
}

void check_count(const Command& command, const std::vector<std::string>& given) {
  std::size_t least = 0;
  bool endless = false;
  for (const Argument& argument : command.arguments) {
    if (!argument.optional) ++least;
    endless = endless || argument.repeats;
  }
  if (given.size() < least) {
    fail_usage("missing " + std::string(command.arguments[given.size()].name) + " (usage: " + usage(command) + ")");
  }
  if (given.size() > command.arguments.size() && !endless) {
    fail_usage("unexpected argument " + core::quoted(given[command.arguments.size()]) + " (usage: " + usage(command) + ")");
  }
}

}  // namespace

std::string usage(const Command& command) {
  std::string text = "bide " + std::string(command.path);
  for (const Argument& argument : command.arguments) text += " " + argument_text(argument);
  if (!command.flags.empty()) text += " [flags]";
  return text;
}

bool asks_for_help(const Command& command, const std::vector<std::string>& words) {
  for (std::size_t at = 0; at < words.size() && words[at] != kArgumentsOnly; ++at) {
    if (words[at] == kHelpFlag.name || words[at] == "-h") return true;
    const Flag* flag = find_flag(command, words[at]);
    if (flag != nullptr && !flag->value.empty()) ++at;  // Its value may look like anything.
  }
  return false;
}

// Words are taken as they were typed: a list, a quote or an escape in a body is the handler's, not ours.
Invocation::Invocation(const Command& command, const std::vector<std::string>& words) : command_(command) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == kArgumentsOnly) {
      arguments_.insert(arguments_.end(), word + 1, words.end());
      break;
    }
    if (word->size() < 2 || word->front() != '-') {
      arguments_.push_back(*word);
      continue;
    }
    const std::size_t equals = word->find('=');
    const Flag* flag = find_flag(command, word->substr(0, equals));
    if (flag == nullptr) fail_unknown_flag(command, *word);
    std::vector<std::string>& values = values_[std::string(flag->name)];
    if (flag->value.empty()) {
      if (equals != std::string::npos) fail_flag(flag->name, "takes no value");
    } else if (equals != std::string::npos) {
      values.push_back(word->substr(equals + 1));
    } else if (++word != words.end()) {
      values.push_back(*word);
    } else {
      fail_flag(flag->name, "needs a value, " + std::string(flag->value) + ": " + std::string(flag->help));
    }
  }
  for (const Flag& flag : command.flags) {
    const std::size_t given = values(flag.name).size();
    if (given > 1 && !flag.repeats) fail_flag(flag.name, "given " + std::to_string(given) + " times");
  }
  check_count(command_, arguments_);
}

std::string Invocation::argument(std::size_t position) const {
  return position < arguments_.size() ? arguments_[position] : std::string();
}

const std::vector<std::string>& Invocation::values(std::string_view flag) const {
  static const std::vector<std::string> none;
  const auto found = values_.find(flag);
  return found == values_.end() ? none : found->second;
}

std::optional<std::string> Invocation::value(std::string_view flag) const {
  const std::vector<std::string>& all = values(flag);
  if (all.empty()) return std::nullopt;
  return all.back();
}

std::string Invocation::value_or(std::string_view flag, std::string_view otherwise) const {
  return value(flag).value_or(std::string(otherwise));
}

std::optional<Milliseconds> Invocation::duration(std::string_view flag) const {
  const auto text = value(flag);
  if (!text) return std::nullopt;
  const auto parsed = core::parse_duration(*text);
  if (!parsed) fail_flag(flag, parsed.error().message);
  return checked(flag, *text, *parsed);
}

std::optional<Time> Invocation::time(std::string_view flag) const {
  const auto text = value(flag);
  if (!text) return std::nullopt;
  const auto parsed = core::parse_time(*text);
  if (!parsed) fail_flag(flag, parsed.error().message);
  return *parsed;
}

std::optional<Time> Invocation::since(std::string_view flag) const {
  const auto text = value(flag);
  if (!text) return std::nullopt;
  if (const auto back = core::parse_duration(*text)) return now() - checked(flag, *text, *back);
  const auto parsed = core::parse_time(*text);
  if (!parsed) fail_flag(flag, parsed.error().message + "; or a duration counted back from now, such as 2h");
  return *parsed;
}

std::optional<Time> Invocation::until(std::string_view flag) const {
  const auto text = value(flag);
  if (!text) return std::nullopt;
  if (const auto ahead = core::parse_duration(*text)) return now() + checked(flag, *text, *ahead);
  const auto parsed = core::parse_time(*text);
  if (!parsed) fail_flag(flag, parsed.error().message + "; or a duration from now, such as 2h");
  return *parsed;
}

std::int64_t Invocation::number(std::string_view flag, std::int64_t otherwise, std::int64_t lowest,
                                std::int64_t highest) const {
  const auto text = value(flag);
  if (!text) return otherwise;
  std::int64_t parsed = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), parsed);
  if (error != std::errc() || end != text->data() + text->size() || parsed < lowest || parsed > highest) {
    fail_flag(flag, "invalid number " + core::quoted(*text) + "; allowed is " + std::to_string(lowest) + " to " +
                        std::to_string(highest));
  }
  return parsed;
}

JobId Invocation::job_id(std::size_t position) const { return take(JobId::parse(argument(position))); }

std::vector<JobId> Invocation::job_ids() const {
  std::vector<JobId> ids;
  for (std::size_t i = 0; i < arguments_.size(); ++i) ids.push_back(job_id(i));
  return ids;
}

void check_name(std::string_view flag, std::string_view what, const std::string& name) {
  if (core::is_name(name)) return;
  fail_flag(flag, "invalid " + std::string(what) + " " + core::quoted(name) + std::string(core::kNameRule));
}

Time now() { return std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now()); }

}  // namespace bide::cli
