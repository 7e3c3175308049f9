#include "cli/invocation.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "cli/failure.h"
#include "cli/help.h"
#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/quote.h"
#include "core/time_text.h"

namespace bide::cli {

namespace {

[[noreturn]] void fail_flag(std::string_view flag, const std::string& message) {
  fail_usage(std::string(flag) + ": " + message);
}

[[noreturn]] void fail_unknown_flag(const Command& command, std::string_view given) {
  given = given.substr(0, given.find('='));
  std::vector<std::string_view> names = {kHelpFlag.name};
  for (const Flag& flag : command.flags) names.push_back(flag.name);
  fail_usage("unknown flag " + core::quoted(given) + core::did_you_mean(given, names) + " (usage: " + usage(command) + ")");
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

Invocation::Invocation(const Command& command, std::vector<std::string> words) : command_(command) {
  CLI::App app;
  app.set_help_flag("");
  app.allow_extras();
  app.add_option("words", arguments_)->expected(0, static_cast<int>(words.size()) + 1);
  std::vector<std::pair<const Flag*, CLI::Option*>> options;
  for (const Flag& flag : command.flags) {
    const std::string name(flag.name);
    CLI::Option* option = flag.value.empty() ? app.add_flag(name) : app.add_option(name);
    if (!flag.value.empty()) option->expected(1)->take_all()->allow_extra_args(false);
    options.emplace_back(&flag, option);
  }
  for (const std::string& word : words) {
    if (word == "--") break;
    for (const Flag& flag : command.flags) {
      if (flag.value.empty() && word.starts_with(std::string(flag.name) + "=")) fail_flag(flag.name, "takes no value");
    }
  }
  // What follows two dashes are arguments, whatever they look like.
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const std::vector<std::string> behind(dashes == words.end() ? dashes : dashes + 1, words.end());
  words.erase(dashes, words.end());
  const std::vector<std::string> typed = words;
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    // The only mistakes left to it are a flag without its value, and a switch with one.
    for (const Flag& flag : command.flags) {
      if (flag.value.empty() || typed.empty() || typed.back() != flag.name) continue;
      fail_flag(flag.name, "needs a value, " + std::string(flag.value) + ": " + std::string(flag.help));
    }
    fail_usage(core::quoted(error.what()) + " (usage: " + usage(command) + ")");
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.size() > 1 && extra.front() == '-') fail_unknown_flag(command, extra);
    arguments_.push_back(extra);
  }
  arguments_.insert(arguments_.end(), behind.begin(), behind.end());
  for (const auto& [flag, option] : options) {
    if (option->count() == 0) continue;
    std::vector<std::string>& values = values_[std::string(flag->name)];
    if (!flag->value.empty()) values = option->results();
    if (values.size() > 1 && !flag->repeats) fail_flag(flag->name, "given " + std::to_string(values.size()) + " times");
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
  // More would not fit where it is added to a clock.
  if (*parsed > Limits::kDelay) fail_flag(flag, core::quoted(*text) + " is too long; allowed: 0 to 36500d (100 years)");
  return *parsed;
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
  if (const auto back = core::parse_duration(*text)) {
    if (*back > Limits::kDelay) fail_flag(flag, core::quoted(*text) + " is too long; allowed: 0 to 36500d (100 years)");
    return now() - *back;
  }
  const auto parsed = core::parse_time(*text);
  if (!parsed) fail_flag(flag, parsed.error().message + "; or a duration counted back from now, such as 2h");
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

Time now() { return std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now()); }

}  // namespace bide::cli
