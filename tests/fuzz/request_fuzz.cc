// Arbitrary bytes on a connection, through the same session that serves real ones. The first byte says in what pieces
// they arrive. Whatever comes, each answer is one, the connection ends when its client does, and nothing is left held.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/session.h"

namespace {

using namespace bide::server;

void require(bool condition) {
  if (!condition) std::abort();
}

Routes routes() {
  const auto hello = [](const Request&, Reply reply) { reply.send({.content_type = "text/plain", .body = "hello"}); };
  const auto echo = [](Request request, Reply reply) {
    reply.send({.content_type = "application/json", .body = std::move(request.body)});
  };
  const auto stream = [](const Request&, Reply reply) {
    reply.stream({.content_type = "text/event-stream"})->write("data: 1\n\n");
  };
  return {{.method = Method::kGet, .pattern = "/", .answer = hello},
          {.method = Method::kGet, .pattern = "/jobs/{id}", .answer = hello},
          {.method = Method::kPost, .pattern = "/jobs", .scope = Scope::kWrite, .answer = echo},
          {.method = Method::kGet, .pattern = "/events", .answer = stream},
          {.method = Method::kDelete, .pattern = "/jobs/{id}", .scope = Scope::kAdmin, .answer = hello}};
}

std::shared_ptr<Service> service() {
  ServiceOptions options;
  options.routes = routes();
  options.limits.body_bytes = 10'000;
  options.admit = [](const Request& request, Scope scope) -> std::variant<Identity, bide::wire::Problem> {
    if (scope != Scope::kAdmin || !request.field("authorization").empty()) return Identity{.name = "a", .scopes = 0xff};
    return bide::wire::Problem{.status = 401, .code = "unauthorized", .detail = "no"};
  };
  return std::make_shared<Service>(std::move(options));
}

class Wire {
 public:
  Wire() { require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_) == 0); }
  ~Wire() { ::close(ends_[1]); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int server_end() const { return ends_[0]; }
  // How much of it went through.
  std::size_t send(std::string_view bytes) const {
    const ssize_t sent = ::send(ends_[1], bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  void end() const { ::shutdown(ends_[1], SHUT_WR); }
  void receive(std::string& into) const {
    char bytes[4096];
    for (ssize_t got = 0; (got = ::recv(ends_[1], bytes, sizeof bytes, 0)) > 0;) {
      into.append(bytes, static_cast<std::size_t>(got));
    }
  }

 private:
  int ends_[2];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = data[0] == 0 ? std::max<std::size_t>(1, all.size()) : data[0];

  static const std::shared_ptr<Service> shared = service();
  boost::asio::io_context io(1);
  const Wire wire;
  std::string answers;
  {
    Socket socket(io, boost::asio::generic::stream_protocol(AF_UNIX, 0), wire.server_end());
    const auto session = std::make_shared<Session>(std::move(socket), plain_channel(wire.server_end()), "127.0.0.1", shared);
    session->start();
    io.poll();
    for (std::size_t at = 0; at < all.size() && !session->is_closed();) {
      at += wire.send(all.substr(at, piece));
      io.restart();
      io.poll();
      wire.receive(answers);
    }
    wire.end();
    for (int rounds = 0; rounds < 1000 && !session->is_closed(); ++rounds) {
      io.restart();
      io.poll();
      wire.receive(answers);
    }
    require(session->is_closed());
  }
  io.restart();
  io.poll();
  wire.receive(answers);
  require(shared->memory->held() == 0 && shared->connections.count() == 0);
  require(answers.empty() || answers.starts_with("HTTP/1.1 ") || answers.starts_with("HTTP/1.0 "));
  return 0;
}
