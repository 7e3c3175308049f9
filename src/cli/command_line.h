// run_command_line: from the words typed to an exit code. Finds the command in the table, runs it, and turns whatever
// goes wrong into one line on stderr.

#pragma once

#include <string>
#include <vector>

namespace bide::cli {

// Without the name of the program.
int run_command_line(std::vector<std::string> words);

}  // namespace bide::cli
