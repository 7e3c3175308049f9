#include "server/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace bide::server_tests {

namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

RawAnswer parse_head(std::string head) {
  RawAnswer answer;
  answer.head = std::move(head);
  answer.status = std::stoi(answer.head.substr(9, 3));
  for (std::size_t at = answer.head.find("\r\n") + 2; at < answer.head.size() - 2;) {
    const std::size_t end = answer.head.find("\r\n", at);
    const std::size_t colon = answer.head.find(": ", at);
    std::string name = answer.head.substr(at, colon - at);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    answer.fields[name] = answer.head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  return answer;
}

}  // namespace

RawClient::RawClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
          std::string("connect: ") + std::strerror(errno));
}

RawClient::RawClient(const std::string& unix_path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(unix_path.begin(), unix_path.end(), address.sun_path);
  require(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
          std::string("connect: ") + std::strerror(errno));
}

RawClient RawClient::with_tls(std::uint16_t port) {
  RawClient client(port);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  client.ssl_.reset(SSL_new(context.get()), SSL_free);
  SSL_set_fd(client.ssl_.get(), client.socket_.get());
  require(SSL_connect(client.ssl_.get()) == 1, "no TLS handshake");
  return client;
}

bool RawClient::wait(short events) const {
  pollfd waits{.fd = socket_.get(), .events = events, .revents = 0};
  return ::poll(&waits, 1, static_cast<int>(patience_.count())) == 1;
}

bool RawClient::send(std::string_view bytes) {
  if (ssl_) {
    std::size_t sent = 0;
    return SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent) == 1;
  }
  while (!bytes.empty()) {
    require(wait(POLLOUT), "the server takes nothing");
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RawClient::end() { ::shutdown(socket_.get(), SHUT_WR); }

void RawClient::slam() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

void RawClient::shrink_receive_buffer() {
  const int bytes = 4096;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

bool RawClient::fill() {
  const bool is_here = ssl_ && SSL_pending(ssl_.get()) > 0;
  require(is_here || wait(POLLIN), "no answer; so far: " + received_.substr(0, 200));
  char bytes[16 * 1024];
  const ssize_t got = ssl_ ? SSL_read(ssl_.get(), bytes, sizeof bytes) : ::recv(socket_.get(), bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  received_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

RawAnswer RawClient::receive_head() {
  std::size_t end = 0;
  while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) return {};
  }
  RawAnswer answer = parse_head(received_.substr(0, end + 4));
  received_.erase(0, end + 4);
  return answer;
}

RawAnswer RawClient::receive() {
  RawAnswer answer = receive_head();
  if (const auto length = answer.fields.find("content-length"); length != answer.fields.end()) {
    const std::size_t bytes = std::stoul(length->second);
    while (received_.size() < bytes) require(fill(), "the body was cut off");
    answer.body = received_.substr(0, bytes);
    received_.erase(0, bytes);
  } else if (answer.fields.contains("transfer-encoding")) {
    for (;;) {
      const std::string line = receive_until("\r\n");
      const std::size_t bytes = std::stoul(line, nullptr, 16);
      while (received_.size() < bytes + 2) require(fill(), "a chunk was cut off");
      answer.body += received_.substr(0, bytes);
      received_.erase(0, bytes + 2);
      if (bytes == 0) break;
    }
  }
  // Tests that count the memory of a server should not find ours.
  if (received_.empty()) received_.shrink_to_fit();
  return answer;
}

std::string RawClient::receive_until(std::string_view text) {
  std::size_t at = 0;
  while ((at = received_.find(text)) == std::string::npos) {
    require(fill(), "the connection ended; so far: " + received_.substr(0, 200));
  }
  std::string all = received_.substr(0, at + text.size());
  received_.erase(0, at + text.size());
  return all;
}

std::string RawClient::receive_rest() {
  while (fill()) {
  }
  return std::exchange(received_, {});
}

bool RawClient::is_closed_by_server() {
  return wait(POLLIN) && !fill();
}

RawAnswer RawClient::ask(std::string_view request) {
  send(request);
  return receive();
}

std::string get(std::string_view path, std::string_view fields) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n";
}

std::string post(std::string_view path, std::string_view body, std::string_view fields) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

}  // namespace bide::server_tests
