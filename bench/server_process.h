// ServerProcess: `bide serve` in a process of its own, on a port of loopback and a store of its own, as users run it.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "bide/result.h"

namespace bide::bench {

class ServerProcess {
 public:
  // `program` is the bide command. Returns when the server answers.
  static Result<ServerProcess> start(const std::string& program, const std::string& directory);
  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ServerProcess& operator=(ServerProcess&&) = delete;
  ~ServerProcess();  // SIGTERM, and SIGKILL when that does not help.

  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Memory that is its own and resident.
  std::uint64_t resident_bytes() const;

 private:
  ServerProcess(pid_t process, std::uint16_t port) : process_(process), port_(port) {}

  pid_t process_;
  std::uint16_t port_;
};

}  // namespace bide::bench
