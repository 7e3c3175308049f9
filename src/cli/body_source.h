// read_body: the body of a job as it is named on the command line.

#pragma once

#include <string>

namespace bide::cli {

// The text itself; - is stdin, @FILE a file. Never reads more than a body may have, and one byte.
//
// Throws Failure: 66 cannot be read, 64 too large.
std::string read_body(const std::string& argument);

}  // namespace bide::cli
