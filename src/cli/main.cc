#include <csignal>

#include "cli/command_line.h"

int main(int argc, char** argv) {
  // A file that has reached the process's limit is a full disk, and no reason to die.
  std::signal(SIGXFSZ, SIG_IGN);
  return bide::cli::run_command_line({argv + (argc > 0 ? 1 : 0), argv + argc});
}
