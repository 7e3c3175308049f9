#include "cli/completion.h"

#include <array>
#include <map>
#include <set>
#include <vector>

#include "cli/command.h"
#include "cli/command_groups.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/invocation.h"
#include "cli/json.h"
#include "core/did_you_mean.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

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

std::string cases() {
  std::string text;
  for (const auto& [beginning, words] : continuations()) {
    text += "    '" + beginning + "') words='" + joined(words) + "' ;;\n";
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
         cases() +
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
         [] {
           std::string text = cases();
           for (std::size_t at = 0; (at = text.find(" words=", at)) != std::string::npos; at += 13) {
             text.replace(at, 7, " words_found=");
           }
           return text;
         }() +
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
constexpr std::array kShells = {Shell{"bash", bash}, Shell{"zsh", zsh}, Shell{"fish", fish}};

int completion(const Invocation& call) {
  const std::string script = completion_script(call.argument(0));
  if (call.json()) {
    std::puts(JsonObject().add("shell", call.argument(0)).add("script", script).text().c_str());
  } else {
    std::fputs(script.c_str(), stdout);
  }
  return kOk;
}

int manual(const Invocation& call) {
  std::fputs(call.json() ? (commands_json() + "\n").c_str() : manual_page().c_str(), stdout);
  return kOk;
}

}  // namespace

std::string completion_script(std::string_view shell) {
  std::vector<std::string_view> names;
  for (const Shell& known : kShells) {
    if (known.name == shell) return known.script();
    names.push_back(known.name);
  }
  fail_usage("unknown shell " + core::quoted(shell) + "; known are bash, zsh, fish" + core::did_you_mean(shell, names));
}

std::vector<Command> completion_commands() {
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
           .run = manual}};
}

}  // namespace bide::cli
