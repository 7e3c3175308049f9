// PostgresServer, MariadbServer: a database server of the test's own, in a temporary folder, on a port of loopback. What it
// confirmed is synced. It ends with the object, and with the test when that is killed. Neither wants to be root: started by
// root, it runs as the user of its package.
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
class SqlServer {
 public:
  virtual ~SqlServer();
  SqlServer(const SqlServer&) = delete;
  SqlServer& operator=(const SqlServer&) = delete;

  const std::string& directory() const { return directory_.path(); }
  std::uint16_t port() const { return port_; }
  std::string url(const std::string& options = "") const { return url_at(port_, options); }
  // Through a proxy.
  std::string url_at(std::uint16_t port, const std::string& options = "") const;

  bool is_alive() const { return process_ > 0; }
  void start();  // One that was stopped or killed, with the data it had. Returns when it takes connections.
  void stop();   // As an operator would.
  void kill();   // -9, with all of its processes.
  // SIGSTOP and SIGCONT: alive for its kernel, silent for everybody else.
  void pause();
  void resume();

  // What the server's own command prints for a statement, without headings. Throws when it fails.
  virtual std::string ask(const std::string& statement) = 0;

 protected:
  SqlServer(std::string scheme, std::string user);
  std::vector<std::string> as_user(std::vector<std::string> arguments) const;
  std::vector<std::string> environment() const;
  virtual std::vector<std::string> command() const = 0;

  TemporaryDirectory directory_;

 private:
  void launch();
  std::vector<pid_t> processes() const;

  ServerKeeper keeper_{directory_.path()};
  const std::string scheme_;
  const std::string user_;  // Of the operating system; empty: we are not root.
  const std::uint16_t port_;
  pid_t process_ = -1;
  std::vector<pid_t> paused_;
};

class PostgresServer : public SqlServer {
 public:
  static bool is_installed();
  // More settings, such as "fsync=off".
  explicit PostgresServer(std::vector<std::string> settings = {});
  ~PostgresServer() override { kill(); }
  std::string ask(const std::string& statement) override;

 private:
  std::vector<std::string> command() const override;

  const std::vector<std::string> settings_;
};

class MariadbServer : public SqlServer {
 public:
  static bool is_installed();
  explicit MariadbServer(std::vector<std::string> settings = {});
  ~MariadbServer() override { kill(); }
  std::string ask(const std::string& statement) override;

 private:
  std::vector<std::string> command() const override;

  const std::vector<std::string> settings_;
};

}  // namespace bide::support
