// RedisServer: a Redis of the test's own, in a temporary folder, on a port of loopback. What it confirmed is synced
// (appendfsync always) unless it is told otherwise. It ends with the object, and with the test when that is killed.
//
// A failure to start throws, with the end of the log.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/server_keeper.h"
#include "support/temporary_directory.h"

namespace bide::support {

// Not safe to share between threads, except url() and port().
class RedisServer {
 public:
  // False where the package is not installed: tests skip then, and say so.
  static bool is_installed();

  enum class Kind { kServer, kSentinel };

  // More lines for its configuration, such as "replicaof 127.0.0.1 7000"; of a sentinel, all that is not about its place.
  explicit RedisServer(std::vector<std::string> configuration = {}, Kind kind = Kind::kServer);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  const std::string& directory() const { return directory_.path(); }
  std::uint16_t port() const { return port_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

  bool is_alive() const { return process_ > 0; }
  pid_t process() const { return process_; }
  void start();  // One that was stopped or killed, with the data it had. Returns when it takes commands.
  void start_without_waiting();
  void stop();   // As an operator would.
  void kill();   // -9.
  // SIGSTOP and SIGCONT: alive for its kernel, silent for everybody else.
  void pause();
  void resume();

  // What redis-cli prints for a command. Throws when the server cannot be asked.
  std::string ask(const std::vector<std::string>& command);

 private:
  void launch();
  void await();

  TemporaryDirectory directory_;
  ServerKeeper keeper_{directory_.path()};
  const Kind kind_;
  std::uint16_t port_;
  pid_t process_ = -1;
};

}  // namespace bide::support
