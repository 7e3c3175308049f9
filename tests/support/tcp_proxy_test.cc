#include "support/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/child_process.h"

namespace bide::support {
namespace {

using platform::Descriptor;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class TcpProxyTest : public testing::Test {
 protected:
  TcpProxyTest() {
    const sockaddr_in address = loopback(server_port_);
    const int on = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 10), 0);
  }

  static Descriptor connect_to(std::uint16_t port) {
    Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{10, 0};
    setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const sockaddr_in address = loopback(port);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return client;
  }

  // Both ends of a connection through the proxy.
  std::pair<Descriptor, Descriptor> connection() {
    Descriptor client = connect_to(proxy_.port());
    return {std::move(client), Descriptor(accept(listener_.get(), nullptr, nullptr))};
  }

  static void say(const Descriptor& to, const std::string& text) {
    EXPECT_EQ(send(to.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Until so much has come, or the end.
  static std::string hear(const Descriptor& from, std::size_t size) {
    std::string text;
    while (text.size() < size) {
      char bytes[100];
      const ssize_t count = recv(from.get(), bytes, std::min(sizeof bytes, size - text.size()), 0);
      if (count <= 0) break;
      text.append(bytes, static_cast<std::size_t>(count));
    }
    return text;
  }
  static bool is_over(const Descriptor& socket) {
    char byte;
    return recv(socket.get(), &byte, 1, 0) <= 0;
  }

  const std::uint16_t server_port_ = free_port();
  Descriptor listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  TcpProxy proxy_{server_port_};
};

TEST_F(TcpProxyTest, PassesBytesBothWaysAndTheEndToo) {
  auto [client, server] = connection();
  say(client, "question");
  EXPECT_EQ(hear(server, 8), "question");
  say(server, "answer");
  EXPECT_EQ(hear(client, 6), "answer");
  client = Descriptor();
  EXPECT_TRUE(is_over(server));
  EXPECT_EQ(proxy_.connections(), 1u);
  EXPECT_EQ(proxy_.cuts(), 0u);
  EXPECT_EQ(proxy_.bytes(TcpProxy::Direction::kToServer), 8u);
}

TEST_F(TcpProxyTest, CutsAfterTheByteThatWasNamed) {
  auto [client, server] = connection();
  proxy_.cut_after(TcpProxy::Direction::kToServer, 5);
  say(client, "abc");
  EXPECT_EQ(hear(server, 3), "abc");
  say(client, "defg");
  EXPECT_TRUE(is_over(client));
  EXPECT_TRUE(hear(server, 4).size() <= 2) << "a reset may overtake what was sent";
  EXPECT_EQ(proxy_.cuts(), 1u);
  EXPECT_EQ(proxy_.bytes(TcpProxy::Direction::kToServer), 5u);
  auto [next_client, next_server] = connection();
  say(next_client, "the next one is whole");
  EXPECT_EQ(hear(next_server, 21), "the next one is whole");
}

TEST_F(TcpProxyTest, CutEndsEveryConnection) {
  auto [one, one_server] = connection();
  auto [two, two_server] = connection();
  proxy_.cut();
  for (const Descriptor* end : {&one, &one_server, &two, &two_server}) EXPECT_TRUE(is_over(*end));
  EXPECT_EQ(proxy_.cuts(), 2u);
}

TEST_F(TcpProxyTest, RefusesAndLetsThroughAgain) {
  proxy_.refuse(true);
  const Descriptor refused = connect_to(proxy_.port());
  EXPECT_TRUE(is_over(refused));
  EXPECT_EQ(proxy_.connections(), 0u);
  proxy_.refuse(false);
  auto [client, server] = connection();
  say(server, "welcome");
  EXPECT_EQ(hear(client, 7), "welcome");
}

TEST_F(TcpProxyTest, HoldsBytesBackWhileItStalls) {
  auto [client, server] = connection();
  say(client, "a");
  EXPECT_EQ(hear(server, 1), "a");
  proxy_.stall(true);
  say(client, "b");
  char byte;
  EXPECT_LT(recv(server.get(), &byte, 1, MSG_DONTWAIT), 0);
  proxy_.stall(false);
  EXPECT_EQ(hear(server, 1), "b");
}

TEST_F(TcpProxyTest, DelaysBytes) {
  auto [client, server] = connection();
  proxy_.delay(std::chrono::milliseconds(50));
  const auto start = std::chrono::steady_clock::now();
  say(client, "slow");
  EXPECT_EQ(hear(server, 4), "slow");
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace bide::support
