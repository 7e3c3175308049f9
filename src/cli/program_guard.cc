#include "cli/program_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <cerrno>
#include <set>

namespace bide::cli {

namespace {

int to_guard = -1;

// Positive: watch this group; negative: forget it. Few bytes are written in one piece.
void tell(pid_t message) {
  if (to_guard < 0) return;
  while (::write(to_guard, &message, sizeof message) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void guard(int from_worker) {
  // Signals to the worker's terminal or service are not meant for it: it ends with the worker.
  ::setpgid(0, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, "bide-guard");
  std::set<pid_t> groups;
  for (;;) {
    pid_t message = 0;
    const auto got = ::read(from_worker, &message, sizeof message);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof message) break;
    if (message > 0) {
      groups.insert(message);
    } else {
      groups.erase(-message);
    }
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  ::_exit(0);
}

}  // namespace

int ProgramGuard::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  const pid_t child = ::fork();
  const int reason = errno;
  if (child == 0) {
    ::close(ends[1]);
    guard(ends[0]);
  }
  ::close(ends[0]);
  if (child > 0) {
    to_guard = ends[1];
    return 0;
  }
  ::close(ends[1]);
  return reason;
}

void ProgramGuard::watch(pid_t group) { tell(group); }

void ProgramGuard::forget(pid_t group) { tell(-group); }

}  // namespace bide::cli
