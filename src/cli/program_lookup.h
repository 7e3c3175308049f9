// require_program: whether a program can be started, asked before the first job is taken, so that a slip of the pen costs
// no attempts.

#pragma once

#include <string>

namespace bide::cli {

// Looks where execvp would: a name with a slash is a path, any other is looked for along $PATH.
//
// Throws Failure: 66 there is no such program, 77 there is but it cannot be executed.
void require_program(const std::string& name);

}  // namespace bide::cli
