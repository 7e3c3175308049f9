// RabbitmqServer: a RabbitMQ of the test's own, of one node or of several that form a cluster.
//
// Everything of it is private: a temporary folder, a cookie, ports on loopback (below 32768, so that no outgoing
// connection has taken them), an epmd. It needs neither root nor a plugin. All of it ends with the object, and when the
// test is killed a small shell that outlives it ends the processes and removes the folder. Dead-letter workers wait 3 s
// for a confirm, instead of three minutes, so that delays go on soon after a restart.
//
// The version is the installed one, or that whose sbin folder BIDE_RABBITMQ_SBIN names.
//
// A failure to start throws, with the end of the log.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/server_keeper.h"
#include "support/temporary_directory.h"

namespace bide::support {

struct RabbitmqQueue {
  std::string name;
  std::string type;  // quorum, classic or stream.
  std::uint64_t messages = 0;
  std::uint64_t consumers = 0;
  int leader = -1;  // The node, counted from 0; -1 when there is none at the moment.
};

// Not safe to share between threads, except url() and port().
class RabbitmqServer {
 public:
  // False where the package is not installed: tests skip then, and say so.
  static bool is_installed();

  explicit RabbitmqServer(int nodes = 1);
  ~RabbitmqServer();
  RabbitmqServer(const RabbitmqServer&) = delete;
  RabbitmqServer& operator=(const RabbitmqServer&) = delete;

  const std::string& directory() const { return directory_.path(); }
  int size() const { return static_cast<int>(nodes_.size()); }
  std::uint16_t port(int node = 0) const;
  std::string url(int node = 0) const;  // amqp://guest:guest@127.0.0.1:PORT

  bool is_alive(int node = 0) const;
  pid_t process(int node = 0) const { return nodes_.at(static_cast<std::size_t>(node)).process; }
  void start(int node = 0);  // One that was stopped or killed, with the data it had. Returns when it takes connections.
  void stop(int node = 0);   // As an operator would.
  void kill(int node = 0);   // -9.
  // SIGSTOP and SIGCONT: alive for its kernel, silent for everybody else.
  void pause(int node = 0);
  void resume(int node = 0);

  // Runs Erlang expressions in a node (-1: the first that is alive) and returns what they print.
  std::string evaluate(const std::string& expressions, int node = -1);

  std::vector<RabbitmqQueue> queues();
  int leader_of(const std::string& queue);
  void delete_queue(const std::string& queue);
  // Every queue and exchange whose name begins so is deleted.
  void forget(const std::string& prefix);
  // Nodes accept no more publishes while the alarm is on.
  void set_memory_alarm(bool on);

 private:
  struct Node {
    std::string name;
    std::string directory;
    std::uint16_t port = 0;
    std::uint16_t distribution_port = 0;
    pid_t process = -1;
  };

  void write_configuration();
  void start_epmd();
  void launch(Node& node);
  void await(Node& node);
  void reap(Node& node);
  std::vector<std::string> environment() const;
  std::vector<std::string> environment(const Node& node) const;

  TemporaryDirectory directory_;
  std::string cookie_;
  std::uint16_t epmd_port_ = 0;
  std::optional<ServerKeeper> keeper_;
  pid_t epmd_ = -1;
  std::vector<Node> nodes_;
};

}  // namespace bide::support
