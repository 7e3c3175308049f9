#include "bench/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "bench/http_connection.h"
#include "bench/resources.h"

namespace bide::bench {

namespace {

constexpr int kPatienceSeconds = 30;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool has_ended(pid_t process) {
  int status = 0;
  return ::waitpid(process, &status, WNOHANG) == process;
}

}  // namespace

Result<ServerProcess> ServerProcess::start(const std::string& program, const std::string& directory) {
  const Result<std::uint16_t> port = free_loopback_port();
  if (!port) return port.error();
  const std::string url = "bide:" + directory + "/data";
  const std::string listen = "127.0.0.1:" + std::to_string(*port);
  const std::string log = directory + "/serve.log";
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) return Error{ErrorCode::kIoError, std::string("fork: ") + std::strerror(errno)};
  if (process == 0) {
    // A server must not outlive the benchmark that started it.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int to = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ::dup2(to, STDOUT_FILENO);
    ::dup2(to, STDERR_FILENO);
    ::execl(program.c_str(), program.c_str(), "serve", "--url", url.c_str(), "--listen", listen.c_str(),
            "--local-without-token", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ServerProcess server(process, *port);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (std::chrono::steady_clock::now() < deadline) {
    if (has_ended(process)) {
      server.process_ = -1;
      return Error{ErrorCode::kIoError, "the server ended at once: " + first_line(log)};
    }
    if (auto connection = HttpConnection::open(*port)) {
      if (const auto answer = connection->ask("GET", "/healthz", ""); answer && answer->status == 200) return server;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return Error{ErrorCode::kIoError, "the server does not answer on port " + std::to_string(*port)};
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)), port_(other.port_) {}

ServerProcess::~ServerProcess() {
  if (process_ <= 0) return;
  ::kill(process_, SIGTERM);
  for (int i = 0; i < kPatienceSeconds * 100; ++i) {
    if (has_ended(process_)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

std::uint64_t ServerProcess::resident_bytes() const { return resident_bytes_of(std::to_string(process_)); }

}  // namespace bide::bench
