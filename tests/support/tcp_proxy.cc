#include "support/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace bide::support {
namespace {

// So much may be on its way in one direction of a connection; then its sender has to wait.
constexpr std::size_t kMostWaiting = 1 << 20;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A closed socket then says "reset", and forgets what it had still to send.
void forget_on_close(int socket) {
  const linger at_once{1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void send_without_waiting(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

TcpProxy::TcpProxy(std::uint16_t server_port)
    : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), server_port_(server_port) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_.get(), 64) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error(std::string("the proxy cannot listen: ") + std::strerror(errno));
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

TcpProxy::~TcpProxy() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  waker_.wake();
  thread_.join();
}

void TcpProxy::lead_to(std::uint16_t server_port) {
  const std::lock_guard lock(mutex_);
  server_port_ = server_port;
}

void TcpProxy::cut() {
  {
    const std::lock_guard lock(mutex_);
    for (auto& connection : open_) end(*connection);
  }
  waker_.wake();
}

void TcpProxy::cut_after(Direction direction, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  left(direction) = bytes;
}

void TcpProxy::refuse(bool on) {
  const std::lock_guard lock(mutex_);
  refuses_ = on;
}

void TcpProxy::stall(bool on) {
  {
    const std::lock_guard lock(mutex_);
    stalls_ = on;
  }
  waker_.wake();
}

void TcpProxy::delay(std::chrono::milliseconds by) {
  const std::lock_guard lock(mutex_);
  delay_ = by;
}

std::uint64_t TcpProxy::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

std::uint64_t TcpProxy::cuts() const {
  const std::lock_guard lock(mutex_);
  return cuts_;
}

std::uint64_t TcpProxy::bytes(Direction direction) const {
  const std::lock_guard lock(mutex_);
  return passed_[direction == Direction::kToServer ? 0 : 1];
}

void TcpProxy::serve() {
  for (;;) {
    std::vector<pollfd> wanted;
    std::size_t polled = 0;
    int timeout = -1;
    {
      const std::lock_guard lock(mutex_);
      if (stops_) return;
      std::erase_if(open_, [](const auto& connection) { return connection->over; });
      wanted.push_back({waker_.descriptor(), POLLIN, 0});
      wanted.push_back({listener_.get(), POLLIN, 0});
      const auto now = Clock::now();
      for (const auto& connection : open_) {
        const auto events = [&](const Side& side, const Side& other) {
          short interest = 0;
          if (!stalls_ && !side.ended && other.waiting_bytes < kMostWaiting) interest = POLLIN;
          if (!stalls_ && !side.waiting.empty()) {
            const auto left_until = std::chrono::ceil<std::chrono::milliseconds>(side.waiting.front().due - now).count();
            if (left_until <= 0) interest = static_cast<short>(interest | POLLOUT);
            if (left_until > 0 && (timeout < 0 || left_until < timeout)) timeout = static_cast<int>(left_until);
          }
          return interest;
        };
        // A descriptor of which nothing is wanted is left out, or a closed one would wake us for ever.
        const short client = events(connection->client, connection->server);
        const short server = events(connection->server, connection->client);
        wanted.push_back({client != 0 ? connection->client.socket.get() : -1, client, 0});
        wanted.push_back({server != 0 ? connection->server.socket.get() : -1, server, 0});
      }
      polled = open_.size();
    }
    if (poll(wanted.data(), wanted.size(), timeout) < 0 && errno != EINTR) return;
    waker_.clear();
    const std::lock_guard lock(mutex_);
    if (stalls_) continue;
    for (std::size_t i = 0; i < polled; ++i) {
      Connection& connection = *open_[i];
      if (connection.over) continue;
      const short client = wanted[2 + 2 * i].revents, server = wanted[3 + 2 * i].revents;
      if ((client & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(connection, Direction::kToServer);
      if ((server & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(connection, Direction::kToClient);
      write_to(connection, Direction::kToServer);
      write_to(connection, Direction::kToClient);
      if (connection.client.shut && connection.server.shut) connection.over = true;
    }
    accept_all();
  }
}

void TcpProxy::accept_all() {
  for (;;) {
    platform::Descriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client.valid()) return;
    if (refuses_) {
      forget_on_close(client.get());
      continue;
    }
    platform::Descriptor server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(server_port_);
    // On loopback this succeeds or is refused at once.
    if (connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      forget_on_close(client.get());
      continue;
    }
    fcntl(server.get(), F_SETFL, O_NONBLOCK);
    send_without_waiting(client.get());
    send_without_waiting(server.get());
    auto connection = std::make_unique<Connection>();
    connection->client.socket = std::move(client);
    connection->server.socket = std::move(server);
    open_.push_back(std::move(connection));
    connections_ += 1;
  }
}

void TcpProxy::read_from(Connection& connection, Direction direction) {
  const bool to_server = direction == Direction::kToServer;
  Side& from = to_server ? connection.client : connection.server;
  Side& to = to_server ? connection.server : connection.client;
  char bytes[16 * 1024];
  const ssize_t got = recv(from.socket.get(), bytes, sizeof bytes, 0);
  if (connection.over || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  if (got < 0) {
    connection.over = true;
    return;
  }
  if (got == 0) {
    from.ended = true;
    return;
  }
  auto count = static_cast<std::size_t>(got);
  bool reached = false;
  if (std::optional<std::uint64_t>& limit = left(direction); limit.has_value()) {
    reached = count > *limit;
    count = static_cast<std::size_t>(std::min<std::uint64_t>(count, *limit));
    *limit -= count;
    if (reached) limit.reset();
  }
  passed_[to_server ? 0 : 1] += count;
  to.waiting.push_back({std::string(bytes, count), Clock::now() + delay_});
  to.waiting_bytes += count;
  if (reached) {
    // The bytes before the cut arrive.
    to.waiting.back().due = Clock::now();
    write_to(connection, direction);
    end(connection);
  }
}

void TcpProxy::write_to(Connection& connection, Direction direction) {
  const bool to_server = direction == Direction::kToServer;
  Side& from = to_server ? connection.client : connection.server;
  Side& to = to_server ? connection.server : connection.client;
  const auto now = Clock::now();
  while (!connection.over && !to.waiting.empty() && to.waiting.front().due <= now) {
    std::string& bytes = to.waiting.front().bytes;
    const ssize_t sent = send(to.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) {
      connection.over = true;
      return;
    }
    to.waiting_bytes -= static_cast<std::size_t>(sent);
    bytes.erase(0, static_cast<std::size_t>(sent));
    if (bytes.empty()) to.waiting.pop_front();
  }
  if (from.ended && !from.shut && to.waiting.empty()) {
    shutdown(to.socket.get(), SHUT_WR);
    from.shut = true;
  }
}

void TcpProxy::end(Connection& connection) {
  if (connection.over) return;
  connection.over = true;
  cuts_ += 1;
  forget_on_close(connection.client.socket.get());
  forget_on_close(connection.server.socket.get());
  // Not closed yet: the thread may be polling them. It closes them when it is woken.
  shutdown(connection.client.socket.get(), SHUT_RDWR);
  shutdown(connection.server.socket.get(), SHUT_RDWR);
}

}  // namespace bide::support
