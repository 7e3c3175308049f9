// The texts about commands, and the commands that print them: completion, manual, version.

#include "cli/command.h"

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/output.h"
#include "core/did_you_mean.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

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

// bide.1, in the macros of man(7).
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
  for (const ExitCodeInfo& exit : kExitCodes) {
    page += ".TP\n.B " + std::to_string(exit.code) + "\n" + roff(exit.text) + "\n";
  }
  return page +
         ".SH ENVIRONMENT\n"
         ".TP\n.B BIDE_URL\nWhere the jobs live, when \\-\\-url is not given.\n"
         ".TP\n.B NO_COLOR\nWhen not empty: no colour, also on a terminal.\n";
}

// The whole table, for programs.
JsonObject commands_json() {
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
  return JsonObject().add("version", version()).add("commands", commands);
}

// What may follow each beginning: "" the first words, "job" its commands, "job list" its flags.
std::map<std::string, std::vector<std::string>> continuations() {
  std::map<std::string, std::vector<std::string>> all;
  std::set<std::string> groups;
  for (const Command& command : all_commands()) {
    const std::string path(command.path);
    const std::size_t space = path.find(' ');
    if (groups.insert(path.substr(0, space)).second) all[""].push_back(path.substr(0, space));
    if (space != std::string::npos) all[path.substr(0, space)].push_back(path.substr(space + 1));
    for (const Flag& flag : command.flags) all[path].emplace_back(flag.name);
    all[path].emplace_back(kHelpFlag.name);
  }
  return all;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// The branches of a case statement that sets this variable to what may follow.
std::string cases(const std::string& variable) {
  std::string text;
  for (const auto& [beginning, words] : continuations()) {
    text += "    '" + beginning + "') " + variable + "='" + joined(words) + "' ;;\n";
  }
  return text;
}

std::string bash() {
  return "# bash completion for bide: source <(bide completion bash)\n"
         "_bide() {\n"
         "  local path= words= word\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $word in -*) break ;; esac\n"
         "    path=\"${path:+$path }$word\"\n"
         "  done\n"
         "  while :; do\n"
         "    case $path in\n" +
         cases("words") +
         "    esac\n"
         "    [[ -n $words || $path != *' '* ]] && break\n"
         "    path=${path% *}\n"
         "  done\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
         "}\n"
         "complete -o default -F _bide bide\n";
}

std::string zsh() {
  return "#compdef bide\n"
         "# zsh completion for bide: source <(bide completion zsh)\n"
         "_bide() {\n"
         "  local path_so_far= candidates= word\n"
         "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
         "    [[ $word == -* ]] && break\n"
         "    path_so_far=\"${path_so_far:+$path_so_far }$word\"\n"
         "  done\n"
         "  while :; do\n"
         "    local words_found=\n"
         "    case $path_so_far in\n" +
         cases("words_found") +
         "    esac\n"
         "    candidates=$words_found\n"
         "    [[ -n $candidates || $path_so_far != *' '* ]] && break\n"
         "    path_so_far=${path_so_far% *}\n"
         "  done\n"
         "  compadd -- ${=candidates}\n"
         "}\n"
         "compdef _bide bide\n";
}

std::string fish() {
  std::string text = "# fish completion for bide: bide completion fish | source\ncomplete -c bide -f\n";
  std::set<std::string> groups;
  for (const Command& command : all_commands()) {
    const std::string path(command.path);
    const std::size_t space = path.find(' ');
    const std::string group = path.substr(0, space);
    if (groups.insert(group).second) {
      text += "complete -c bide -n __fish_use_subcommand -a " + group + "\n";
    }
    std::string condition = "__fish_seen_subcommand_from " + group;
    if (space != std::string::npos) {
      const std::string second = path.substr(space + 1);
      text += "complete -c bide -n '" + condition + "' -a " + second + " -d '" + std::string(command.summary) + "'\n";
      condition += "; and __fish_seen_subcommand_from " + second;
    }
    for (const Flag& flag : command.flags) {
      text += "complete -c bide -n '" + condition + "' -l " + std::string(flag.name.substr(2)) +
              (flag.value.empty() ? "" : " -r") + "\n";
    }
  }
  return text;
}

struct Shell {
  std::string_view name;
  std::string (*script)();
};
constexpr auto kShells = std::to_array<Shell>({{"bash", bash}, {"zsh", zsh}, {"fish", fish}});

int completion(const Invocation& call) {
  const std::string name = call.argument(0);
  std::vector<std::string_view> names;
  for (const Shell& shell : kShells) {
    names.push_back(shell.name);
    if (shell.name != name) continue;
    const std::string script = shell.script();
    print(call, JsonObject().add("shell", name).add("script", script), script);
    return kOk;
  }
  fail_usage("unknown shell " + core::quoted(name) + "; known are bash, zsh, fish" + core::did_you_mean(name, names));
}

int manual(const Invocation& call) {
  print(call, commands_json(), manual_page());
  return kOk;
}

int print_version(const Invocation& call) {
  print(call, JsonObject().add("version", version()).add("compiler", __VERSION__),
        "bide " + std::string(version()) + "\n");
  return kOk;
}

}  // namespace

std::string_view version() { return BIDE_VERSION; }

std::vector<Command> help_commands() {
  return {{.path = "completion",
           .summary = "Write a completion script for a shell",
           .details = "For this session: source <(bide completion bash)",
           .arguments = {{"SHELL", "bash, zsh or fish"}},
           .flags = {kJsonFlag},
           .run = completion},
          {.path = "manual",
           .summary = "Write the manual page, for man",
           .details = "To read it: bide manual | man -l -",
           .flags = {{"--json", "", "every command, argument and flag as JSON instead"}},
           .run = manual},
          {.path = "version", .summary = "Say which bide this is", .flags = {kJsonFlag}, .run = print_version}};
}

}  // namespace bide::cli
