// TestServer: a server of a few lines for the tests of the client. Each connection has a thread that reads requests and
// answers what the script says, byte for byte, so that every mistake a server can make can be made here.

#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace bide::http_client {

class TestServer {
 public:
  // Given the whole request. What comes back is sent as it is; empty: the connection is closed without a word.
  using Script = std::function<std::string(const std::string& request)>;

  // `closes`: the connection ends after each answer.
  explicit TestServer(Script script, const std::string& unix_path = {}, bool closes = false)
      : script_(std::move(script)), closes_(closes) {
    listener_ = unix_path.empty() ? listen_tcp() : listen_unix(unix_path);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~TestServer() {
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    close(listener_);
    {
      std::lock_guard lock(mutex_);
      for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
      released_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    for (const int connection : connections_) close(connection);
  }

  std::string url(const std::string& path = "/") const { return "http://127.0.0.1:" + std::to_string(port_) + path; }
  std::uint16_t port() const { return port_; }

  static std::string answer(const std::string& body, const std::string& status = "200 OK",
                            const std::string& fields = {}) {
    return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + fields + "\r\n" +
           body;
  }

  std::size_t connections() const {
    std::lock_guard lock(mutex_);
    return connections_.size();
  }
  std::size_t requests() const {
    std::lock_guard lock(mutex_);
    return requests_.size();
  }
  std::string request(std::size_t index) const {
    std::lock_guard lock(mutex_);
    return requests_.at(index);
  }
  void wait_for_requests(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return requests_.size() >= count; });
  }
  // For scripts that answer later: until release().
  void hold() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return released_; });
  }
  void release() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  int listen_tcp() {
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(descriptor, 64) != 0 ||
        getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("cannot listen on loopback");
    }
    port_ = ntohs(address.sin_port);
    return descriptor;
  }

  static int listen_unix(const std::string& path) {
    const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(descriptor, 64) != 0) {
      throw std::runtime_error("cannot listen on " + path);
    }
    return descriptor;
  }

  void accept_all() {
    while (!stopping_) {
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      std::lock_guard lock(mutex_);
      connections_.push_back(connection);
      threads_.emplace_back([this, connection] { serve(connection); });
    }
  }

  // One request: the head, and as much body as it announces.
  static bool read_request(int connection, std::string& pending, std::string& request) {
    for (;;) {
      if (const auto end = pending.find("\r\n\r\n"); end != std::string::npos) {
        std::size_t whole = end + 4;
        if (const auto at = pending.find("Content-Length: "); at < end) whole += std::stoul(pending.substr(at + 16));
        if (pending.size() >= whole) {
          request = pending.substr(0, whole);
          pending.erase(0, whole);
          return true;
        }
      }
      char bytes[65536];
      const ssize_t count = recv(connection, bytes, sizeof bytes, 0);
      if (count <= 0) return false;
      pending.append(bytes, static_cast<std::size_t>(count));
    }
  }

  void serve(int connection) {
    std::string pending;
    std::string request;
    while (read_request(connection, pending, request)) {
      {
        std::lock_guard lock(mutex_);
        requests_.push_back(request);
        changed_.notify_all();
      }
      const std::string bytes = script_(request);
      if (bytes.empty()) break;
      std::size_t at = 0;
      while (at < bytes.size()) {
        const ssize_t count = ::send(connection, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
        if (count <= 0) break;
        at += static_cast<std::size_t>(count);
      }
      if (closes_) break;
    }
    shutdown(connection, SHUT_RDWR);
  }

  const Script script_;
  const bool closes_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  bool released_ = false;
  std::vector<int> connections_;
  std::vector<std::string> requests_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace bide::http_client
