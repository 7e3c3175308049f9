#include "support/server_keeper.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "support/child_process.h"

namespace bide::support {
namespace {

// In the background and an orphan, so that who kills the test with its children does not find it among them.
constexpr char kKeeper[] = R"((
  trap '' INT TERM HUP
  while read -r line <&3; do :; done
  for try in 1 2 3 4 5 6 7 8 9 10; do
    processes=$(grep -lsxzF "BIDE_TEST_SERVER=$1" /proc/[0-9]*/environ | sed 's:[^0-9]::g')
    [ -n "$processes" ] || break
    kill -9 $processes
    sleep 0.1
  done
  rm -rf "$1"
) &)";

}  // namespace

ServerKeeper::ServerKeeper(const std::string& directory) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe for the keeper");
  const platform::Descriptor end(ends[0]);
  end_ = platform::Descriptor(ends[1]);
  const pid_t shell = spawn({.arguments = {"/bin/sh", "-c", kKeeper, "keeper", directory},
                             .environment = {"PATH=/usr/bin:/bin"},
                             .inherited = end.get()});
  waitpid(shell, nullptr, 0);
}

}  // namespace bide::support
