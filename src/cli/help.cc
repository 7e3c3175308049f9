#include "cli/help.h"

#include <algorithm>

#include "cli/exit_texts.h"
#include "cli/json.h"
#include "cli/table.h"
#include "cli/version.h"

namespace bide::cli {

namespace {

std::string argument_text(const Argument& argument) {
  std::string text(argument.name);
  if (argument.repeats) text += "...";
  return argument.optional ? "[" + text + "]" : text;
}

std::string flag_text(const Flag& flag) {
  return std::string(flag.name) + (flag.value.empty() ? "" : " " + std::string(flag.value));
}

std::vector<Flag> flags_with_help(const Command& command) {
  std::vector<Flag> flags = command.flags;
  flags.push_back(kHelpFlag);
  return flags;
}

Table summaries(std::string_view group) {
  Table table;
  for (const Command& command : all_commands()) {
    if (!group.empty() && !(command.path.starts_with(group) && command.path.substr(group.size()).starts_with(" "))) {
      continue;
    }
    table.row({"  " + std::string(command.path), std::string(command.summary)});
  }
  return table;
}

}  // namespace

std::string usage(const Command& command) {
  std::string text = "bide " + std::string(command.path);
  for (const Argument& argument : command.arguments) text += " " + argument_text(argument);
  if (!command.flags.empty()) text += " [flags]";
  return text;
}

std::string help_for_all() {
  return "bide: durable background jobs. A job is enqueued now, later or after a failure, runs at least once, and never\n"
         "disappears.\n\n"
         "usage: bide COMMAND [arguments] [flags]\n\n" +
         summaries("").text() +
         "\n`bide COMMAND --help` says more about one. Begin with `bide demo`.\n";
}

std::string help_for_group(std::string_view group) {
  return "usage: bide " + std::string(group) + " COMMAND [arguments] [flags]\n\n" + summaries(group).text();
}

std::string help_for(const Command& command) {
  std::string text = std::string(command.summary) + ".\n\nusage: " + usage(command) + "\n";
  if (!command.details.empty()) text += "\n" + std::string(command.details) + "\n";
  if (!command.arguments.empty()) {
    Table table;
    for (const Argument& argument : command.arguments) {
      table.row({"  " + std::string(argument.name), std::string(argument.help)});
    }
    text += "\n" + table.text();
  }
  Table flags;
  for (const Flag& flag : flags_with_help(command)) flags.row({"  " + flag_text(flag), std::string(flag.help)});
  return text + "\n" + flags.text();
}

namespace {

// Backslashes and hyphens mean something to man, and so does a point or an apostrophe at the beginning of a line.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool line_begins = out.empty() || out.back() == '\n';
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\n' && line_begins) {
      out += ".PP\n";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string manual_page() {
  std::string page = ".TH BIDE 1 \"\" \"bide " + std::string(version()) + "\" \"User Commands\"\n";
  page += ".SH NAME\nbide \\- durable background jobs\n";
  page += ".SH SYNOPSIS\n.B bide\n.I COMMAND\n[arguments] [flags]\n";
  page += ".SH DESCRIPTION\n";
  page += roff(
      "A job is enqueued now, later or after a failure, runs at least once, and never disappears. Jobs live in a data "
      "directory; the flag --url, or BIDE_URL in the environment, says which.\n");
  page += ".SH COMMANDS\n";
  for (const Command& command : all_commands()) {
    page += ".SS \"" + roff(usage(command)) + "\"\n" + roff(command.summary) + ".\n";
    if (!command.details.empty()) page += ".PP\n" + roff(command.details) + "\n";
    for (const Argument& argument : command.arguments) {
      page += ".TP\n.I " + roff(argument.name) + "\n" + roff(argument.help) + "\n";
    }
    for (const Flag& flag : flags_with_help(command)) {
      page += ".TP\n.B \"" + roff(flag_text(flag)) + "\"\n" + roff(flag.help) + "\n";
    }
  }
  page += ".SH \"EXIT STATUS\"\n";
  for (const ExitText& exit : kExitTexts) {
    page += ".TP\n.B " + std::to_string(exit.code) + "\n" + roff(exit.text) + "\n";
  }
  page += ".SH ENVIRONMENT\n";
  for (const EnvironmentText& variable : kEnvironmentTexts) {
    page += ".TP\n.B " + roff(variable.name) + "\n" + roff(variable.text) + "\n";
  }
  return page;
}

std::string commands_json() {
  JsonArray commands;
  for (const Command& command : all_commands()) {
    JsonArray arguments;
    for (const Argument& argument : command.arguments) {
      arguments.add(JsonObject()
                        .add("name", argument.name)
                        .add("help", argument.help)
                        .add("optional", argument.optional)
                        .add("repeats", argument.repeats));
    }
    JsonArray flags;
    for (const Flag& flag : flags_with_help(command)) {
      flags.add(JsonObject()
                    .add("name", flag.name)
                    .add("value", flag.value)
                    .add("help", flag.help)
                    .add("repeats", flag.repeats));
    }
    commands.add(JsonObject()
                     .add("path", command.path)
                     .add("summary", command.summary)
                     .add("usage", usage(command))
                     .add("arguments", arguments)
                     .add("flags", flags));
  }
  return JsonObject().add("version", version()).add("commands", commands).text();
}

}  // namespace bide::cli
