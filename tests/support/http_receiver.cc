#include "support/http_receiver.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace bide::support {

namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// The head of a request, up to and with its empty line.
HttpReceived read_head(std::string_view head) {
  HttpReceived request;
  std::size_t at = head.find("\r\n");
  request.line = head.substr(0, at);
  while (at + 2 < head.size()) {
    const std::size_t end = head.find("\r\n", at + 2);
    const std::string_view line = head.substr(at + 2, end - at - 2);
    at = end;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    request.fields[lower(std::string(line.substr(0, colon)))] = value;
  }
  return request;
}

bool read_more(int connection, std::string& pending) {
  char bytes[65536];
  const ssize_t count = recv(connection, bytes, sizeof bytes, 0);
  if (count <= 0) return false;
  pending.append(bytes, static_cast<std::size_t>(count));
  return true;
}

bool send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

HttpPeer::~HttpPeer() { tell_answered(); }

void HttpPeer::tell_answered() {
  if (const auto answered = std::exchange(answered_, nullptr)) answered();
}

void HttpPeer::answer(const std::string& status, const std::string& body, const std::string& fields) {
  tell_answered();
  send("HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + fields + "\r\n" + body);
}

bool HttpPeer::send(std::string_view bytes) { return send_all(descriptor_, bytes) && !stopping_; }

void HttpPeer::hang_up() { shutdown(descriptor_, SHUT_RDWR); }

bool HttpPeer::wait_until_gone(int milliseconds) {
  pollfd waiting{descriptor_, POLLIN | POLLRDHUP, 0};
  return poll(&waiting, 1, milliseconds) > 0 || stopping_;
}

HttpReceiver::HttpReceiver(Script script, std::uint16_t port) : script_(std::move(script)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_, 128) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    close(listener_);
    throw std::runtime_error("cannot listen on port " + std::to_string(port) + " of loopback");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpReceiver::~HttpReceiver() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  {
    std::lock_guard lock(mutex_);
    for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  for (const int connection : connections_) close(connection);
}

std::string HttpReceiver::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

std::vector<HttpReceived> HttpReceiver::received() const {
  std::lock_guard lock(mutex_);
  return received_;
}

std::vector<HttpReceived> HttpReceiver::wait_for(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return received_.size() >= count; });
  return received_;
}

int HttpReceiver::most_at_once() const {
  std::lock_guard lock(mutex_);
  return most_at_once_;
}

void HttpReceiver::accept_all() {
  while (!stopping_) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    std::lock_guard lock(mutex_);
    connections_.push_back(connection);
    threads_.emplace_back([this, connection] { serve(connection); });
  }
}

void HttpReceiver::serve(int connection) {
  std::string pending;
  while (!stopping_) {
    std::size_t end = 0;
    while ((end = pending.find("\r\n\r\n")) == std::string::npos) {
      if (!read_more(connection, pending)) return;
    }
    HttpReceived request = read_head(std::string_view(pending).substr(0, end + 2));
    pending.erase(0, end + 4);
    const auto length = request.fields.find("content-length");
    const std::size_t size = length == request.fields.end() ? 0 : std::stoul(length->second);
    if (request.fields.count("expect") != 0) send_all(connection, "HTTP/1.1 100 Continue\r\n\r\n");
    while (pending.size() < size) {
      if (!read_more(connection, pending)) return;
    }
    request.body = pending.substr(0, size);
    pending.erase(0, size);
    {
      std::lock_guard lock(mutex_);
      received_.push_back(request);
      most_at_once_ = std::max(most_at_once_, ++at_once_);
      changed_.notify_all();
    }
    HttpPeer peer(connection, stopping_, [this] {
      std::lock_guard lock(mutex_);
      --at_once_;
    });
    script_(request, peer);
  }
}

}  // namespace bide::support
