// TcpProxy: stands between a client and a server on loopback, and does to their connections what networks do: cuts them
// after any byte, holds them up, slows them down, lets nobody through.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "platform/descriptor.h"
#include "platform/local_socket.h"

namespace bide::support {

// Safe to use from any thread.
class TcpProxy {
 public:
  enum class Direction { kToServer, kToClient };

  // Listens on a port of loopback that it chooses, and leads to a port of loopback.
  explicit TcpProxy(std::uint16_t server_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  std::uint16_t port() const { return port_; }

  // New connections lead here from now on; those that are there stay.
  void lead_to(std::uint16_t server_port);
  // Every connection ends at once, and what was on its way is lost.
  void cut();
  // So many more bytes pass in this direction, over all connections together; the connection that would carry the next
  // one is cut instead. Takes the place of an earlier word about the same direction.
  void cut_after(Direction direction, std::uint64_t bytes);
  // New connections are closed before a byte passes.
  void refuse(bool on);
  // Nothing passes in either direction; nothing is closed either.
  void stall(bool on);
  // Every byte is on its way for so long.
  void delay(std::chrono::milliseconds by);

  std::uint64_t connections() const;  // Let through so far.
  std::uint64_t cuts() const;         // Ended by cut() or cut_after() so far.
  std::uint64_t bytes(Direction direction) const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Piece {
    std::string bytes;
    Clock::time_point due;
  };
  struct Side {
    platform::Descriptor socket;
    std::deque<Piece> waiting;  // To be written to it.
    std::size_t waiting_bytes = 0;
    bool ended = false;    // It sends no more.
    bool shut = false;     // And the other side has been told so.
  };
  struct Connection {
    Side client;
    Side server;
    bool over = false;
  };

  void serve();
  void accept_all();
  void read_from(Connection& connection, Direction direction);
  void write_to(Connection& connection, Direction direction);
  void end(Connection& connection);
  std::optional<std::uint64_t>& left(Direction direction) { return left_[direction == Direction::kToServer ? 0 : 1]; }

  std::uint16_t port_ = 0;
  platform::Descriptor listener_;
  platform::Waker waker_;
  mutable std::mutex mutex_;  // Guards everything below.
  std::uint16_t server_port_;
  std::vector<std::unique_ptr<Connection>> open_;
  std::optional<std::uint64_t> left_[2];
  std::uint64_t passed_[2] = {0, 0};
  std::uint64_t connections_ = 0;
  std::uint64_t cuts_ = 0;
  std::chrono::milliseconds delay_{0};
  bool refuses_ = false;
  bool stalls_ = false;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace bide::support
