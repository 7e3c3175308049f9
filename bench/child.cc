#include "bench/child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>

namespace bide::bench {

namespace {

Error system_failure(const char* what) {
  return Error{ErrorCode::kIoError, std::string(what) + ": " + std::strerror(errno)};
}

void write_all(int to, const std::string& bytes) {
  std::size_t written = 0;
  while (written < bytes.size()) {
    const auto got = ::write(to, bytes.data() + written, bytes.size() - written);
    if (got < 0 && errno != EINTR) return;
    if (got > 0) written += static_cast<std::size_t>(got);
  }
}

std::string read_exactly(int from, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t read = 0;
  while (read < size) {
    const auto got = ::read(from, bytes.data() + read, size - read);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    read += static_cast<std::size_t>(got);
  }
  bytes.resize(read);
  return bytes;
}

}  // namespace

Result<std::string> run_bytes_in_child(Ending ending, const std::function<void(const ReportBytes&)>& work) {
  int ends[2];
  if (::pipe(ends) != 0) return system_failure("pipe");
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return system_failure("fork");
  if (child == 0) {
    ::close(ends[0]);
    // A measurement must not outlive the one who asked for it.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    work([&](const std::string& bytes) {
      const std::uint64_t size = bytes.size();
      write_all(ends[1], std::string(reinterpret_cast<const char*>(&size), sizeof size) + bytes);
      while (ending == Ending::kKilled) ::pause();
    });
    ::_exit(0);
  }
  ::close(ends[1]);
  std::uint64_t size = 0;
  const std::string prefix = read_exactly(ends[0], sizeof size);
  std::string bytes;
  if (prefix.size() == sizeof size) {
    std::memcpy(&size, prefix.data(), sizeof size);
    bytes = read_exactly(ends[0], size);
  }
  ::close(ends[0]);
  if (ending == Ending::kKilled) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return bytes;
}

}  // namespace bide::bench
