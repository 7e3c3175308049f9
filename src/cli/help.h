// The texts about commands, generated from their table; and the version.

#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"

namespace bide::cli {

// Of everything; of a group, such as "queue"; of one command.
std::string help_for_all();
std::string help_for_group(std::string_view group);
std::string help_for(const Command& command);

std::string_view version();  // "1.2.3"

}  // namespace bide::cli
