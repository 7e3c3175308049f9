// Help: the texts about commands, all from the table of commands.

#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"

namespace bide::cli {

// "bide queue pause QUEUE [--url URL]"
std::string usage(const Command& command);
// Of everything; of a group, such as "queue"; of one command.
std::string help_for_all();
std::string help_for_group(std::string_view group);
std::string help_for(const Command& command);

// bide.1, in the macros of man(7).
std::string manual_page();
// The whole table, for programs.
std::string commands_json();

}  // namespace bide::cli
