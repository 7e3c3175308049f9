// ProgramGuard: a process beside a worker that kills the worker's programs, and all they have started, when the worker dies
// without having done so itself.
//
// It reads the numbers of their process groups from a pipe that only the worker can write to, and whose end is the
// worker's. Each program's process registers itself before it becomes the program, so that none is missed.

#pragma once

#include <sys/types.h>

namespace bide::cli {

class ProgramGuard {
 public:
  // Before the process has files or locks that must end with it, and before it has threads. Returns 0 or errno.
  static int start();
  // In the process that leads the group. Safe between fork and exec.
  static void watch(pid_t group);
  // Before its leader is waited for, as long as nobody else can have the number.
  static void forget(pid_t group);
};

}  // namespace bide::cli
