#include "support/child_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>

#include "platform/descriptor.h"

namespace bide::support {
namespace {

using platform::Descriptor;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

struct Actions {
  Actions() { posix_spawn_file_actions_init(&actions); }
  ~Actions() { posix_spawn_file_actions_destroy(&actions); }
  posix_spawn_file_actions_t actions;
};

struct Attributes {
  Attributes() {
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes); }
  posix_spawnattr_t attributes;
};

// input, output: descriptors, or -1 for what the program says.
pid_t spawn(const Program& program, int input, int output) {
  Actions with;
  posix_spawn_file_actions_t* actions = &with.actions;
  posix_spawn_file_actions_addchdir_np(actions, program.directory.c_str());
  if (input >= 0) {
    posix_spawn_file_actions_adddup2(actions, input, 0);
  } else {
    posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  }
  if (output >= 0) {
    posix_spawn_file_actions_adddup2(actions, output, 1);
  } else {
    posix_spawn_file_actions_addopen(actions, 1, program.output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  }
  posix_spawn_file_actions_adddup2(actions, 1, 2);
  if (program.inherited >= 0) posix_spawn_file_actions_adddup2(actions, program.inherited, 3);
  // An inherited lock would stay held, an inherited pipe would stay open.
  posix_spawn_file_actions_addclosefrom_np(actions, program.inherited >= 0 ? 4 : 3);

  const Attributes attributes;
  pid_t process = -1;
  const int error = posix_spawn(&process, program.arguments.front().c_str(), actions, &attributes.attributes,
                                pointers(program.arguments).data(), pointers(program.environment).data());
  if (error != 0) throw std::runtime_error("cannot start " + program.arguments.front() + ": " + std::strerror(error));
  return process;
}

std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("no pipe: ") + std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

pid_t spawn(const Program& program) { return spawn(program, -1, -1); }

Ended run(Program program, const std::string& input, std::chrono::milliseconds at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  auto [from_us, to_child] = make_pipe();
  auto [from_child, to_us] = make_pipe();
  const pid_t process = spawn(program, from_us.get(), to_us.get());
  from_us = Descriptor();
  to_us = Descriptor();
  // Less than a pipe holds, so it does not block; a child that does not want it is no reason to die.
  signal(SIGPIPE, SIG_IGN);
  if (write(to_child.get(), input.data(), input.size()) < 0 && errno != EPIPE) throw std::runtime_error("pipe");
  to_child = Descriptor();

  Ended ended;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wanted{from_child.get(), POLLIN, 0};
    if (left.count() <= 0 || poll(&wanted, 1, static_cast<int>(left.count())) == 0) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
      return ended;
    }
    char bytes[4096];
    const ssize_t count = read(from_child.get(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    ended.output.append(bytes, static_cast<std::size_t>(count));
  }
  while (waitpid(process, &ended.status, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

std::uint16_t free_port() {
  static std::mt19937 random{std::random_device{}()};
  for (int tries = 0; tries < 1000; ++tries) {
    const auto port = static_cast<std::uint16_t>(std::uniform_int_distribution<int>(10'000, 32'000)(random));
    const Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return port;
  }
  throw std::runtime_error("no port is free");
}

}  // namespace bide::support
