#include "bench/http_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "bench/figures.h"
#include "bench/resources.h"

namespace bide::bench {

namespace {

constexpr std::size_t kRequestBytes = 500;
constexpr std::size_t kAnswerBytes = 250;

Error failure(const char* what) { return {ErrorCode::kIoError, std::string(what) + ": " + std::strerror(errno)}; }

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

Result<int> listen_on_loopback(std::uint16_t& port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return failure("socket");
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const Error error = failure("listen");
    ::close(listener);
    return error;
  }
  port = ntohs(address.sin_port);
  return listener;
}

bool send_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_all(int from, char* into, std::size_t size) {
  while (size > 0) {
    const auto got = ::recv(from, into, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void set_no_delay(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Result<HttpConnection> HttpConnection::open(std::uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return failure("socket");
  HttpConnection connection(descriptor);
  const sockaddr_in address = loopback(port);
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failure("connect");
  set_no_delay(descriptor);
  return connection;
}

HttpConnection::HttpConnection(HttpConnection&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), received_(std::move(other.received_)) {}

HttpConnection& HttpConnection::operator=(HttpConnection&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(received_, other.received_);
  return *this;
}

HttpConnection::~HttpConnection() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<HttpReply> HttpConnection::ask(std::string_view method, std::string_view path, std::string_view body) {
  if (Status sent = send(method, path, body); !sent) return sent.error();
  return receive();
}

Status HttpConnection::send(std::string_view method, std::string_view path, std::string_view body) {
  std::string request;
  request.append(method).append(" ").append(path).append(" HTTP/1.1\r\nHost: localhost\r\n");
  if (!body.empty()) {
    request.append("Content-Type: application/json\r\nContent-Length: ")
        .append(std::to_string(body.size()))
        .append("\r\n");
  }
  request.append("\r\n").append(body);
  if (!send_all(descriptor_, request)) return failure("send");
  return {};
}

Status HttpConnection::read_more(int flags) {
  char bytes[16 * 1024];
  const auto got = ::recv(descriptor_, bytes, sizeof bytes, flags);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (got < 0) return failure("recv");
  if (got == 0) return Error{ErrorCode::kIoError, "the server closed the connection"};
  received_.append(bytes, static_cast<std::size_t>(got));
  return {};
}

Result<HttpReply> HttpConnection::receive() {
  for (;;) {
    if (auto reply = take_reply()) return std::move(*reply);
    if (Status read = read_more(0); !read) return read.error();
  }
}

Result<std::optional<HttpReply>> HttpConnection::receive_some() {
  if (Status read = read_more(MSG_DONTWAIT); !read) return read.error();
  return take_reply();
}

std::optional<HttpReply> HttpConnection::take_reply() {
  const std::size_t end = received_.find("\r\n\r\n");
  if (end == std::string::npos) return std::nullopt;
  std::size_t size = 0;
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  if (const std::size_t at = received_.find(kLength); at < end) {
    std::from_chars(received_.data() + at + kLength.size(), received_.data() + end, size);
  }
  if (received_.size() < end + 4 + size) return std::nullopt;
  HttpReply reply;
  std::from_chars(received_.data() + 9, received_.data() + 12, reply.status);
  reply.body = received_.substr(end + 4, size);
  received_.erase(0, end + 4 + size);
  return reply;
}

Result<std::uint16_t> free_loopback_port() {
  std::uint16_t port = 0;
  const Result<int> listener = listen_on_loopback(port);
  if (!listener) return listener.error();
  ::close(*listener);
  return port;
}

Result<double> loopback_round_trip_us(int count) {
  std::uint16_t port = 0;
  const Result<int> listener = listen_on_loopback(port);
  if (!listener) return listener.error();
  std::thread echo([listening = *listener] {
    const int peer = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    set_no_delay(peer);
    char request[kRequestBytes];
    const std::string answer(kAnswerBytes, 'a');
    while (receive_all(peer, request, sizeof request) && send_all(peer, answer)) {
    }
    ::close(peer);
  });
  std::vector<double> microseconds;
  Status status;
  {
    Result<HttpConnection> connection = HttpConnection::open(port);
    const std::string request(kRequestBytes, 'r');
    char answer[kAnswerBytes];
    for (int i = 0; connection && i < count; ++i) {
      const Stopwatch watch;
      if (!send_all(connection->descriptor(), request) || !receive_all(connection->descriptor(), answer, sizeof answer))
        break;
      microseconds.push_back(watch.microseconds());
    }
    if (!connection) {
      status = connection.error();
      ::shutdown(*listener, SHUT_RDWR);
    }
  }
  echo.join();
  ::close(*listener);
  if (!status) return status.error();
  if (microseconds.size() != static_cast<std::size_t>(count)) return failure("loopback");
  return median(std::move(microseconds));
}

}  // namespace bide::bench
