// spawn and run: other programs, started with nothing of ours but what is named here: no descriptors, no environment,
// a session of their own, so that what ends the test from a terminal does not reach them first.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace bide::support {

struct Program {
  std::vector<std::string> arguments;    // The first is the path.
  std::vector<std::string> environment;  // NAME=value
  std::string directory = "/";
  std::string output = "/dev/null";  // Appended to, errors too.
  int inherited = -1;                // A descriptor that it gets as number 3.
};

// Throws when the program cannot be started.
pid_t spawn(const Program& program);

struct Ended {
  int status = -1;  // As waitpid says; -1: killed, because it took too long.
  std::string output;

  bool succeeded() const { return status == 0; }
};

// Starts it, hands it the input, and waits for its end.
Ended run(Program program, const std::string& input, std::chrono::milliseconds at_most);

// A TCP port of loopback that is free now, below the range from which outgoing connections get theirs.
std::uint16_t free_port();

}  // namespace bide::support
