// Shell completion, from the table of commands.

#pragma once

#include <string>
#include <string_view>

namespace bide::cli {

// For bash, zsh or fish; throws Failure for any other.
std::string completion_script(std::string_view shell);

}  // namespace bide::cli
