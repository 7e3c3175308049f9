// A session on a channel that the test decides about, byte by byte.

#include "server/http/session.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/raw_client.h"

namespace bide::server_tests {
namespace {

using namespace bide::server;

// Takes no write at once, as TLS does when the socket is full: the next write goes on with the bytes of the first, whatever
// it is given, and says how many those were.
class ReluctantChannel : public Channel {
 public:
  explicit ReluctantChannel(int socket) : plain_(plain_channel(socket)) {}

  Transfer handshake() override { return plain_->handshake(); }
  Transfer read(char* into, std::size_t size) override { return plain_->read(into, size); }
  Transfer write(std::string_view bytes, bool more) override {
    if (pending_.empty()) {
      pending_ = bytes.substr(0, 20);
      return {.state = Transfer::State::kWantsWrite};
    }
    const std::string now = std::exchange(pending_, {});
    return plain_->write(now, more);
  }
  bool has_buffered() const override { return false; }
  void end() override { plain_->end(); }

 private:
  std::unique_ptr<Channel> plain_;
  std::string pending_;
};

TEST(Session, WritesAllOfContinueBeforeTheAnswer) {
  ServiceOptions options;
  options.routes = {{.method = Method::kPost, .pattern = "/echo", .answer = [](Request request, Reply reply) {
                       reply.send({.content_type = "application/octet-stream", .body = std::move(request.body)});
                     }}};
  const auto service = std::make_shared<Service>(std::move(options));
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  boost::asio::io_context io(1);
  RawClient client{platform::Descriptor(ends[1])};
  Socket socket(io, boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[0]);
  std::make_shared<Session>(std::move(socket), std::make_unique<ReluctantChannel>(ends[0]), "127.0.0.1", service)->start();
  const auto run = [&io] {
    for (int rounds = 0; rounds < 100; ++rounds) {
      io.restart();
      io.poll();
    }
  };
  client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n");
  run();
  client.send("hello");
  run();
  client.end();
  run();
  const std::string all = client.receive_rest();
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  ASSERT_TRUE(all.starts_with(kContinue)) << all;
  EXPECT_TRUE(all.substr(kContinue.size()).starts_with("HTTP/1.1 200 OK\r\n")) << all;
  EXPECT_TRUE(all.ends_with("\r\n\r\nhello")) << all;
  EXPECT_EQ(service->connections.count(), 0u);
}

}  // namespace
}  // namespace bide::server_tests
